/* Keys on a board of Squares, and a word when the kernel is silent. Called with the board's CSS class. Keys typed here
   must not reach the notebook, where some of them insert or delete cells. */
(scope => {
  const WAIT = 5000, TRIES = 1200, GONE = '.jupyter-widgets-disconnected';
  const SILENT = 'The kernel does not answer: it is busy, or it was restarted. After a restart, copy ' +
    'the game as text from beside the board, run this cell again, paste the text and press Load.';
  const steps = columns => ({ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns});

  const start = root => {
    const grid = root.querySelector('.' + scope), squares = [...grid.children];
    const columns = +getComputedStyle(grid).getPropertyValue('--columns');
    const board = root.querySelector('.cn-board');
    const notice = document.createElement('div');
    grid.after(notice);
    notice.className = 'cn-silence';
    notice.hidden = true;
    notice.setAttribute('role', 'alert');
    grid.setAttribute('role', 'group');
    grid.setAttribute('aria-label', 'board');
    const said = root.querySelector('.cn-says');
    if (said) said.parentElement.setAttribute('aria-live', 'polite');
    const named = {'.cn-entry input': 'your move', 'textarea': 'the game as text', '.cn-your-side select': 'your side',
      '.cn-strength select': 'strength'};
    for (const [which, words] of Object.entries(named))
      root.querySelectorAll(which).forEach(control => control.setAttribute('aria-label', words));
    root.tabIndex = -1;

    let answered = 0, asked = 0;
    new MutationObserver(changes => {
      if (changes.every(change => change.target === notice)) return;
      answered = Date.now();
      notice.hidden = true;
    })
      .observe(board, {subtree: true, childList: true, characterData: true});
    root.addEventListener('click', event => {
      if (!event.target.closest('button') || root.querySelector('.cn-thinking')) return;
      const now = asked = Date.now();
      setTimeout(() => {
        if (answered < now && asked === now) { notice.textContent = SILENT; notice.hidden = false; }
      }, root.matches(GONE) ? 0 : WAIT);
    });
    root.addEventListener('keydown', event => {
      if (event.ctrlKey || event.metaKey || event.altKey || (event.shiftKey && event.key === 'Enter')) return;
      event.stopPropagation();
      if (event.target.closest('input, textarea, select')) return;
      const at = squares.indexOf(event.target), step = steps(columns)[event.key];
      if (at >= 0 && step) {
        const next = squares[at + (grid.classList.contains('cn-turned') ? -step : step)];
        if (next) next.focus();
        event.preventDefault();
      } else if (/^[a-zA-Z0-9]$/.test(event.key)) {
        const entry = root.querySelector('.cn-entry input');
        if (entry) entry.focus();
      }
    });
  };
  const stills = () => [...document.querySelectorAll('.cn-still[data-board="' + scope + '"]')];
  /* A notebook that is opened without a kernel has no board, and the page says so in words that help nobody. */
  const alone = () => stills().forEach(still => {
    const output = still.closest('.jp-OutputArea, .output');
    if (output) output.querySelectorAll('.jp-OutputArea-output, .output_subarea').forEach(each => {
      if (each.textContent.startsWith('Error displaying widget')) each.textContent = '';
    });
  });
  const wait = tries => {
    const roots = [...document.querySelectorAll('.' + scope + '-table')].filter(root => !root.dataset.keys);
    const ready = roots.filter(root => root.querySelector('.' + scope + ' > :last-child'));
    ready.forEach(root => { root.dataset.keys = '1'; start(root); });
    if (ready.length) stills().forEach(still => { still.style.display = 'none'; });
    else if (tries) { alone(); setTimeout(() => wait(tries - 1), 50); }
  };
  wait(TRIES);
})
