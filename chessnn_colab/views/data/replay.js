/* Plays games back without a kernel. Called with the id of the element that holds them: a picture, and as JSON {games,
   board: SVG, glyphs: {glyph: [words, SVG]}, names of the squares, last, danger: SVG}.
   A game: {title, players, note, start: "glyph per square", plies: [{c: {square: glyph}, l: last squares, k: in check or won,
   n: number, m: move}], end}. After them a ply may be an opinion of the position that they lead to: {i: iteration,
   a: arrows as SVG, w: words as HTML, s: spikes of each square}. Opinions play again and again; a click pauses them.
   A replay with a place is drawn anew there with every iteration of a training. It plays the newest game by itself, and
   goes on where it was, and at its end with the newest; whoever touches it decides from then on. */
(id => {
  const TRIES = 200, MILLISECONDS = 700, LEAST = 60, WHOLE_GAME = 90000, AT_THE_END = 2500;
  const make = (tag, parent, text, name) => {
    const element = parent.appendChild(document.createElement(tag));
    if (text) element.textContent = text;
    if (name) element.className = name;
    return element;
  };

  const start = root => {
    const held = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
    const games = held.games, shown = root.querySelector('.cn-replay-live');
    root.querySelector('.cn-replay-still').hidden = true;
    shown.hidden = false;
    const board = make('div', shown, '', 'cn-board'), side = make('div', shown, '', 'cn-side');
    const grid = make('div', board);
    grid.setAttribute('role', 'img');
    grid.innerHTML = held.board;
    const squares = grid.querySelectorAll('.cn-on');
    const over = grid.firstChild.appendChild(document.createElementNS('http://www.w3.org/2000/svg', 'g'));
    const newest = games[games.length - 1], place = root.dataset.place;
    const memory = window.chessnnPlaces = window.chessnnPlaces || {}, kept = place ? memory[place] : null;
    const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;
    const first = newest.plies.findIndex(each => each.w) + 1;  // 0: a game without opinions
    const most = Math.max(1, ...newest.plies.flatMap(each => each.s || []));
    let game = newest, ply = 0, timer = null, auto = Boolean(place) && !calm && (!kept || kept.auto);
    const remember = () => { if (place) memory[place] = {title: game.title, ply, auto, playing: Boolean(timer)}; };

    const controls = make('div', board, '', 'cn-row cn-keys');
    const button = (text, label, act) => {
      const element = make('button', controls, text);
      element.type = 'button';
      element.setAttribute('aria-label', label);
      element.title = label;
      element.addEventListener('click', act);
      return element;
    };
    const stop = () => { clearInterval(timer); timer = null; play.textContent = 'Play'; remember(); };
    const go = to => { ply = Math.max(0, Math.min(game.plies.length, to)); draw(); remember(); };
    const own = () => { auto = false; said.setAttribute('aria-live', 'polite'); };  // somebody decides from now on
    const step = to => { own(); stop(); go(to); };
    const run = () => {
      play.textContent = 'Pause';
      timer = setInterval(() => {
        if (!root.isConnected) return clearInterval(timer);
        if (ply < game.plies.length) return go(ply + 1);
        stop();
        if (auto && (first || game !== newest)) setTimeout(goOn, AT_THE_END);
      }, Math.max(LEAST, Math.min(MILLISECONDS, WHOLE_GAME / game.plies.length)));
      remember();
    };
    const goOn = () => {  // to the newest game, unless somebody has touched it meanwhile
      if (!auto || timer || !root.isConnected) return;
      choose(games.length - 1);
      go(first);
      run();
    };
    const toggle = () => {
      own();
      if (timer) return stop();
      if (ply === game.plies.length) go(first);
      run();
    };
    button('Start', 'first position', () => step(0));
    button('Back', 'one move back', () => step(ply - 1));
    const play = button('Play', 'play or pause', toggle);
    button('Next', 'one move on', () => step(ply + 1));
    button('End', 'last position', () => step(game.plies.length));
    const slider = make('input', board, '', 'cn-slider');
    Object.assign(slider, {type: 'range', min: 0});
    slider.setAttribute('aria-label', 'move');
    slider.addEventListener('input', () => step(+slider.value));

    const pick = make('select', side);
    pick.setAttribute('aria-label', 'which game');
    games.forEach((each, n) => { make('option', pick, each.title).value = n; });
    pick.hidden = games.length < 2;
    pick.value = games.length - 1;
    const title = make('b', side), note = make('div', side, '', 'cn-note');
    const said = make('div', side, '', 'cn-said'), words = make('div', side, '', 'cn-words');
    const fire = make('div', side, '', 'cn-fire'), moves = make('div', side, '', 'cn-moves');
    said.setAttribute('aria-live', auto ? 'off' : 'polite');

    const list = () => {
      moves.textContent = '';
      game.plies.filter(each => each.m).forEach((each, n) => {
        if (each.n) make('span', moves, each.n + '\u00a0');
        const move = make('button', moves, each.m, 'cn-move');
        move.type = 'button';
        move.addEventListener('click', () => step(n + 1));
        moves.append(' ');
      });
      title.textContent = [games.length < 2 ? game.title : '', game.players].filter(Boolean).join(': ');
      note.textContent = game.note;
      slider.max = game.plies.length;
    };
    const draw = () => {
      const standing = [...game.start];
      game.plies.slice(0, ply).forEach(each => Object.assign(standing, each.c));
      const shown = game.plies[ply - 1] || {};
      const now = game.plies.slice(0, ply).filter(each => each.l).pop() || {l: [], k: game.k};
      squares.forEach((square, n) => {
        const glyph = standing[n] === '.' ? '' : held.glyphs[standing[n]][1];
        square.innerHTML = (now.l.includes(n) ? held.last : '') + (now.k.includes(n) ? held.danger : '') + glyph;
      });
      slider.value = ply;
      said.textContent = shown.w ? (shown.i ? 'after iteration ' + shown.i : 'before training') :
        'Ply ' + ply + ' of ' + game.plies.length + ': ' + (shown.m || 'start') +
        (ply === game.plies.length && game.end ? '. ' + game.end : '');
      over.innerHTML = shown.a || '';
      words.innerHTML = shown.w || '';
      fire.innerHTML = (shown.s || []).map(one => '<i style="opacity:' + one / most + '"></i>').join('');
      fire.style.gridTemplateColumns = 'repeat(' + Math.sqrt(fire.childElementCount) + ',1fr)';
      if (shown.s) make('span', fire, 'spikes');
      grid.setAttribute('aria-label', 'Board: ' + standing.map((glyph, n) =>
        glyph === '.' ? '' : held.glyphs[glyph][0] + ' ' + held.names[n]).filter(Boolean).join(', '));
      moves.querySelectorAll('.cn-now').forEach(move => move.classList.remove('cn-now'));
      const current = moves.querySelectorAll('.cn-move')[ply - 1];
      if (current) {
        current.classList.add('cn-now');
        moves.scrollTop = current.offsetTop - moves.clientHeight / 2;
      }
    };
    const choose = number => { game = games[number]; pick.value = number; list(); };
    pick.addEventListener('change', () => { own(); stop(); choose(+pick.value); go(0); });
    root.tabIndex = 0;
    root.addEventListener('keydown', event => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || event.key === 'Tab') return;
      event.stopPropagation();
      if (event.target === pick) return;
      const to = {ArrowLeft: ply - 1, ArrowRight: ply + 1, Home: 0, End: game.plies.length}[event.key];
      if (to !== undefined) step(to);
      else if (event.key === ' ' && event.target.tagName !== 'BUTTON') toggle();
      else return;
      event.preventDefault();
    });
    if (first) {
      grid.title = 'click to pause or play';
      grid.addEventListener('click', toggle);
    }
    const again = kept ? games.findIndex(each => each.title === kept.title) : -1;
    const ended = again < 0 || kept.ply >= games[again].plies.length;
    choose(auto && ended || again < 0 ? games.length - 1 : again);
    if (auto) {
      go(ended ? first : kept.ply);
      run();
    } else {
      const playing = again >= 0 && kept.playing;
      go(again < 0 ? game.plies.length : kept.ply);
      if (playing) run();
    }
  };
  const wait = tries => {
    const found = [...document.querySelectorAll('[data-replay="' + id + '"]')].filter(root => !root.dataset.ready);
    found.forEach(root => { root.dataset.ready = '1'; start(root); });
    if (!found.length && tries) setTimeout(() => wait(tries - 1), 50);
  };
  wait(TRIES);
})
