/* Keys on a board of Squares, which live.js starts. Keys typed here must not reach the notebook, where some of them
   insert or delete cells. */
((root, grid, notice, ask) => {
  const squares = [...grid.children], columns = +getComputedStyle(grid).getPropertyValue('--columns');
  const steps = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns};
  // One square at a time is a stop of the Tab key: the one that had the focus last.
  const rove = to => squares.forEach(each => { each.tabIndex = each === to ? 0 : -1; });
  rove(squares[0]);
  grid.addEventListener('focusin', event => rove(event.target));
  grid.parentElement.after(notice);
  grid.setAttribute('role', 'group');
  grid.setAttribute('aria-label', 'board');
  const said = root.querySelector('.cn-says');
  if (said) said.parentElement.setAttribute('aria-live', 'polite');
  const named = {'.cn-entry input': 'your move', 'textarea': 'the game as text', '.cn-your-side select': 'your side',
    '.cn-strength select': 'strength'};
  for (const [which, words] of Object.entries(named))
    root.querySelectorAll(which).forEach(control => control.setAttribute('aria-label', words));
  root.tabIndex = -1;
  root.dataset.keys = '1';

  const asks = () => { if (!root.querySelector('.cn-thinking')) ask(); };
  root.addEventListener('click', event => { if (event.target.closest('button')) asks(); });
  root.addEventListener('change', event => { if (event.target.closest('select')) asks(); });
  root.addEventListener('keydown', event => {
    if (event.key === 'Enter' && event.target.closest('.cn-entry')) asks();
    if (event.ctrlKey || event.metaKey || event.altKey || (event.shiftKey && event.key === 'Enter')) return;
    event.stopPropagation();
    if (event.target.closest('input, textarea, select')) return;
    const at = squares.indexOf(event.target), step = steps[event.key];
    if (at >= 0 && step) {
      const next = at + (grid.classList.contains('cn-turned') ? -step : step);
      const sameRow = Math.floor(next / columns) === Math.floor(at / columns);
      if (squares[next] && (Math.abs(step) > 1 || sameRow)) squares[next].focus();
      event.preventDefault();
    } else if (/^[a-zA-Z0-9]$/.test(event.key)) {
      const entry = root.querySelector('.cn-entry input');
      if (entry) entry.focus();
    }
  });
})
