/* What a board and sliders share: the picture for readers without a kernel goes while the widget lives, and a silent
   kernel is told of. Called with the CSS class of what the kernel draws (the widget around it has the same with "-root"),
   with the words for a silent kernel, and with what starts the widget once it is on the page. */
((scope, silent, start) => {
  const WAIT = 5000, TRIES = 1200, GONE = '.jupyter-widgets-disconnected';

  const live = root => {
    const drawn = root.querySelector('.' + scope), notice = document.createElement('div');
    notice.hidden = true;
    notice.className = 'cn-silence';
    notice.style.cssText = 'font-weight:600;border:2px solid #c2410c;border-radius:4px;padding:4px 8px;margin:4px 0';
    notice.setAttribute('role', 'alert');
    let answered = 0, asked = 0;
    const ask = () => {
      const now = asked = Date.now();
      setTimeout(() => {
        if (answered < now && asked === now) { notice.textContent = silent; notice.hidden = false; }
      }, root.matches(GONE) ? 0 : WAIT);
    };
    start(root, drawn, notice, ask);
    new MutationObserver(changes => {
      if (changes.every(change => change.target === notice)) return;
      answered = Date.now();
      notice.hidden = true;
    })
      .observe(drawn.parentElement, {subtree: true, childList: true, characterData: true});
  };
  const stills = () => [...document.querySelectorAll('.cn-still[data-of="' + scope + '"]')];
  const wait = tries => {
    const roots = [...document.querySelectorAll('.' + scope + '-root')].filter(root => !root.dataset.live);
    const ready = roots.filter(root => root.querySelector('.' + scope + ' > :last-child'));
    ready.forEach(root => { root.dataset.live = '1'; live(root); });
    if (ready.length) stills().forEach(still => { still.style.display = 'none'; });
    else if (tries) setTimeout(() => wait(tries - 1), 50);
  };
  wait(TRIES);
})
