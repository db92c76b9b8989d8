// The page: a board to click on and to type at, and the network's moves and opinions, which come from a worker thread.

const UNIT = 45;  // of the picture: a square
const VARIED_PLIES = 6;  // the network's moves vary a little until then, so that games differ
const NOISE = 0.5;
const find = selector => document.querySelector(selector);

function element(tag, text) {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}

class Board {
  // onPick is called with the number of the square that was clicked.
  constructor({drawing, marks}, onPick) {
    Object.assign(this, {drawing, kinds: marks});
    this.flipped = false;
    const grid = find(".squares");
    grid.style.gridTemplate = `repeat(${drawing.rows},1fr)/repeat(${drawing.columns},1fr)`;
    this.buttons = drawing.names.map((_, place) => {
      const button = element("button", "");
      button.addEventListener("click", () => onPick(this.squareAt(place)));
      button.addEventListener("focus", () => this.rove(place));
      grid.append(button);
      return button;
    });
    this.rove(0);
    grid.addEventListener("keydown", event => this.step(event));
  }

  // Places are numbered as they lie on the screen. The way back is the same.
  squareAt(place) { return this.flipped ? this.buttons.length - 1 - place : place; }

  // The Tab key stops at one square: the one that had the focus last.
  rove(to) { this.buttons.forEach((button, place) => { button.tabIndex = place === to ? 0 : -1; }); }

  step(event) {
    const {columns} = this.drawing;
    const steps = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns};
    const place = this.buttons.indexOf(document.activeElement), step = steps[event.key];
    if (place < 0 || !step) return;
    event.preventDefault();
    const next = place + step;
    const sameRow = Math.floor(next / columns) === Math.floor(place / columns);
    if (this.buttons[next] && (Math.abs(step) > 1 || sameRow)) this.buttons[next].focus();
  }

  // standing: what is on each square; marks: mark -> squares; arrows: {path, weight, label}; heat: 0 to 1 on each square.
  draw(standing, marks, arrows, heat) {
    const {drawing} = this;
    const {rows, columns, names, grounds, glyphs} = drawing;
    const parts = [[], [], [], []];  // below each other
    standing.forEach((glyph, square) => {
      const [x, y] = this.corner(square);
      const at = content => `<g transform="translate(${x} ${y})">${content}</g>`;
      parts[0].push(at(grounds[(x + y) / UNIT % 2]));
      if (heat) parts[0].push(at(`<rect width="${UNIT}" height="${UNIT}" fill="#d9480f" opacity="${0.9 * heat[square]}"/>`));
      const here = Object.keys(marks).filter(mark => marks[mark].includes(square));
      parts[1].push(at(here.map(mark => this.kinds[mark][0]).join("") + (glyph ? glyphs[glyph][1] : "")));
      const words = [names[square], ...(glyph ? [glyphs[glyph][0]] : []), ...here.map(mark => this.kinds[mark][1])];
      const button = this.buttons[this.squareAt(square)];
      if (button.textContent !== words.join(", ")) button.textContent = words.join(", ");
    });
    const size = Math.round(1.17 * columns), style = `font-family="sans-serif" font-size="${size}" fill="#222" opacity="0.75"`;
    names.forEach((name, square) => {
      const [x, y] = this.corner(square);
      if (x === 0) parts[2].push(`<text x="2" y="${y + 1 + size}" ${style}>${name.slice(1)}</text>`);
      if (y === UNIT * (rows - 1))
        parts[2].push(`<text x="${x + UNIT - 2}" y="${UNIT * rows - 3}" text-anchor="end" ${style}>${name[0]}</text>`);
    });
    const drawn = [...arrows].reverse();
    const labels = new Map(drawn.map(({path, label}) => [path[path.length - 1], label]));  // one at each tip
    parts[3] = [...drawn.map(arrow => this.arrow(arrow)), ...[...labels].map(([square, label]) => this.label(square, label))];
    const box = `0 0 ${UNIT * columns} ${UNIT * rows}`;
    find(".picture").innerHTML = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${box}">${parts.flat().join("")}</svg>`;
  }

  corner(square) {
    const place = this.squareAt(square), {columns} = this.drawing;
    return [UNIT * (place % columns), UNIT * Math.floor(place / columns)];
  }

  // Drawn along the x axis and then turned; a ring where it leads nowhere.
  arrow({path, weight}) {
    const [start, tip] = [path[0], path[path.length - 1]].map(square => this.corner(square).map(edge => edge + UNIT / 2));
    const length = Math.hypot(tip[0] - start[0], tip[1] - start[1]), width = 3 + 7 * weight;
    const turn = Math.atan2(tip[1] - start[1], tip[0] - start[0]) * 180 / Math.PI;
    const shape = length
      ? `<path d="M0 0H${length - 9 - width / 2}V6l9 -6l-9 -6V0" fill="#0a6e5c" stroke-linejoin="round"/>`
      : '<circle r="16" fill="none"/>';
    return `<g transform="translate(${start}) rotate(${turn})" stroke="#0a6e5c" stroke-width="${width}"
      opacity="${0.55 + 0.4 * weight}">${shape}</g>`;
  }

  label(square, text) {
    const [x, y] = this.corner(square), size = Math.round(Math.min(1.44 * this.drawing.columns, 14));
    return `<text x="${x + UNIT / 2}" y="${y + UNIT - 4}" font-family="sans-serif" font-size="${size}" text-anchor="middle"
      fill="#111" stroke="#fff" stroke-width="${size / 4}" paint-order="stroke">${text}</text>`;
  }
}

class Match {
  constructor(data, ask) {
    Object.assign(this, {data, ask, game: makeGame(data), texts: [], chosen: null, opinion: null, asked: 0});
    this.board = new Board(data, square => this.pick(square));
    this.mine = 0;
    this.connect();
    this.go();
  }

  connect() {
    find("#mine").append(...this.game.players.map((name, side) => new Option(name, side)));
    find("#mine").addEventListener("change", event => {
      this.mine = Number(event.target.value);
      this.board.flipped = this.mine === 1 && this.game instanceof ChessGame;
      this.go();
    });
    find("#strength").options[0].text = `looking ahead (${EVALUATIONS} positions a move)`;
    find("#new").addEventListener("click", () => this.restart([]));
    find("#back").addEventListener("click", () => this.takeBack());
    find("#flip").addEventListener("click", () => {
      this.board.flipped = !this.board.flipped;
      this.draw();
    });
    find("#show").addEventListener("change", () => this.draw());
    find("#typing").addEventListener("submit", event => {
      event.preventDefault();
      this.type(find("#entry").value);
    });
    document.addEventListener("keydown", event => {
      if (event.key === "Escape") this.choose(null);
      const typing = /^[a-zA-Z0-9]$/.test(event.key) && !event.ctrlKey && !event.metaKey && !event.altKey;
      if (typing && !event.target.closest("input, select")) find("#entry").focus();
    });
  }

  get waiting() { return !this.game.over && this.game.turn !== this.mine; }

  restart(actions) {
    this.game.become(actions);
    this.texts.length = actions.length;
    this.go();
  }

  // Back to where it was the person's turn.
  takeBack() {
    const {actions, turn} = this.game;
    const back = turn === this.mine ? 2 : 1;
    if (actions.length >= back) this.restart(actions.slice(0, -back));
    else this.say("There is nothing to take back.");
  }

  // Show the position, and ask the network for its opinion and, when it is its turn, for a move.
  async go() {
    this.chosen = null;
    this.opinion = null;
    this.fault = "";
    find(".choices").hidden = true;
    const {game} = this, asked = ++this.asked, play = this.waiting;
    if (!game.over) this.seat = this.mine;  // who plays which side of a game that is over stays
    this.draw();
    this.say(this.news());
    const answer = await this.ask({
      actions: [...game.actions], play, lookahead: find("#strength").value === "look",
      noise: game.actions.length < VARIED_PLIES ? NOISE : 0,
    });
    if (asked !== this.asked) return;  // a new game, or a move taken back
    if (answer.error) {
      if (play) this.fault = answer.error;
      return this.say(answer.error, true);
    }
    if (play) return this.play(answer.action);
    this.opinion = answer.opinion;
    this.draw();
  }

  play(action) {
    this.texts.push(this.game.textOf(action));
    this.game.push(action);
    this.go();
  }

  news() {
    const {game, seat} = this;
    if (game.over) {
      const {score} = game.now.end;
      const whose = (score > 0) === (seat === 0) ? "You won!" : "The network won.";
      return score ? `${whose} ${game.ending()}` : game.ending();
    }
    if (this.waiting) return this.fault || "It is thinking ...";
    const last = game.actions.length ? `It played ${this.texts[this.texts.length - 1]}. ` : "";
    return `${last}Your move: you play ${game.players[seat]}.`;
  }

  // --- moves of the person

  pick(square) {
    if (this.waiting || this.game.over) return this.say(this.news());
    const {game, chosen} = this;
    const starts = game.moves.filter(move => move.path[0] === square);
    const ends = game.moves.filter(move => chosen !== null && move.path[0] === chosen && move.path[1] === square);
    if (ends.length > 1) return this.promote(ends);
    if (ends.length) return this.play(ends[0].action);
    if (starts.length && starts[0].path.length === 1) return this.play(starts[0].action);
    if (starts.length && square !== chosen) return this.choose(square);
    if (square === chosen) return this.choose(null);
    const {names} = this.data.drawing;
    const stones = game.moves[0].path.length === 1;
    this.say(stones ? `${names[square]} is taken.` : `No move of yours starts at ${names[square]}.`);
  }

  choose(square) {
    this.chosen = square;
    find(".choices").hidden = true;
    this.draw();
    this.say(square === null ? this.news() : "Now click where it goes.");
  }

  // What a pawn becomes.
  promote(moves) {
    const buttons = [...moves].reverse().map(move => {  // the queen first
      const button = element("button", move.choice);
      button.addEventListener("click", () => this.play(move.action));
      return button;
    });
    find(".choices").replaceChildren(...buttons);
    find(".choices").hidden = false;
    buttons[0].focus();
    this.say("What does the pawn become?");
  }

  type(text) {
    if (this.waiting || this.game.over) return this.say(this.news());
    try {
      const action = this.game.parse(text);
      find("#entry").value = "";
      this.play(action);
    } catch (error) {
      this.say(error.message);
    }
  }

  // --- what one sees

  say(text, fault = text === this.fault) {
    find(".says").textContent = text;
    find(".says").classList.toggle("fault", fault);
  }

  draw() {
    const {game, chosen, opinion, data} = this;
    const marks = {last: game.last(), [data.drawing.alarm]: game.alarms()};
    if (chosen !== null) {
      const targets = game.moves.filter(move => move.path[0] === chosen).map(move => move.path[1]);
      const taken = game.squares();
      marks.chosen = [chosen];
      marks.target = targets.filter(square => !taken[square]);
      marks.capture = targets.filter(square => taken[square]);
    }
    this.offer(opinion);
    const show = find("#show").value;
    const layer = opinion && show.startsWith("layer") ? opinion.layers[Number(show.slice(5))] : null;
    const arrows = opinion && show === "moves"
      ? opinion.likeliest.map(({path, share}) => ({path, weight: share / opinion.likeliest[0].share, label: percent(share)}))
      : [];
    const [least, most] = layer ? [Math.min(...layer), Math.max(...layer)] : [];
    const heat = layer && Array.from(layer, count => (count - least) / Math.max(most - least, 1e-6));
    this.board.draw(game.squares(), marks, arrows, heat);
    const whose = `Its likeliest moves for ${game.players[game.turn]}:`;
    const spikes = layer && "Spikes are the short pulses that its neurons send. Where the colour is strongest, a neuron of "
      + `this layer sends ${most.toFixed(2)} on average, and where there is no colour ${least.toFixed(2)}.`;
    find("#caption").textContent = spikes || (arrows.length ? whose : "");
    find("#likeliest").replaceChildren(...arrows.map((arrow, i) => element("li", `${opinion.likeliest[i].text}, ${arrow.label}`)));
    this.drawChances(opinion);
    this.drawMoves();
  }

  // The layers that can be shown are known with the first opinion.
  offer(opinion) {
    const show = find("#show");
    if (!opinion || show.options.length > 2) return;
    opinion.layers.forEach((_, number) => {
      const last = number === opinion.layers.length - 1 ? ", the last one" : "";
      show.append(new Option(`its spikes in layer ${number + 1}${last}`, `layer${number}`));
    });
  }

  drawChances(opinion) {
    const {players, over} = this.game;
    const names = [`${players[0]} wins`, "draw", `${players[1]} wins`];
    const score = over ? this.game.now.end.score : 0;
    const chances = over ? [score > 0, score === 0, score < 0].map(Number) : opinion && opinion.chances;
    const bar = find("#chances .bar"), words = find("#chances p");
    if (!chances) return;
    words.textContent = names.map((name, i) => `${name} ${percent(chances[i])}`).join(", ");
    bar.setAttribute("aria-label", words.textContent);
    bar.replaceChildren(...chances.map((share, i) => {
      const part = element("span", share >= 0.12 ? percent(share) : "");
      part.style.flex = `${share} 1 0px`;
      part.className = i === 1 ? "draw" : (i === 0) === (players[0] === "Black") ? "dark" : "";
      return part;
    }));
  }

  drawMoves() {
    const line = this.texts.map((text, ply) => (ply % 2 ? "" : `${ply / 2 + 1}. `) + text).join(" ");
    find("#moves").textContent = line || "None yet.";
    find("#moves").scrollTop = find("#moves").scrollHeight;
  }
}

// What the page says about the network, to somebody who has never heard of it; a paragraph each.
function cardTexts({game, network, card, tensors, half}) {
  const {figures = {}} = card;
  const minutes = Math.round(figures.seconds / 60), games = figures.total_games;
  const time = minutes > 1 ? `${minutes} minutes` : `${Math.round(figures.seconds)} seconds`;
  const trained = games ? `: ${games.toLocaleString("en")} games in ${time} of training` : "";
  const plain = [[", by policy", " solved with its first idea"], ["minimax", "a small program that looks at its move and at the reply"],
    [", looking at", " solved looking at"]];
  const strength = Object.entries(figures.strength || {}).map(([measure, share]) =>
    `${plain.reduce((text, [word, better]) => text.replace(word, better), measure)}: ${share}`);
  const count = tensors.reduce((sum, [, size]) => sum + size, 0).toLocaleString("en");
  const spikes = network.activation === "spikes";
  return [
    `Its name is “${card.run}”. It learned ${game.title} by playing against itself${trained}.`,
    ...(strength.length ? [`How strong it was when it was measured: ${strength.join("; ")}.`] : []),
    `It is a network of ${count} numbers${half ? " (in half precision, to keep this page small)" : ""}, in ${network.blocks}
      blocks of ${network.channels} channels.${spikes ? " Its neurons answer with short pulses, called spikes, as nerve cells do." : ""}`,
    `Iteration ${card.iteration} of its training. Made with chessnn_colab${card.version ? ` ${card.version}` : ""}, which is free software (GPL 3.0 or
      later). The rules of chess are from chess.js (BSD licence); the source of this page has both.`,
  ];
}

// As text.py says it.
function percent(share) {
  if (share > 0 && share < 0.0005) return "under 0.1\u00a0%";
  return `${(100 * share).toFixed(share === 0 || share >= 0.0995 ? 0 : 1)}\u00a0%`;
}

// A function that sends a question to the network's thread and promises its answer. It sends the network along until one
// has been answered.
function startWorker(data, weights) {
  const code = `"use strict";${find("#engine").textContent}`;
  const worker = new Worker(URL.createObjectURL(new Blob([code], {type: "text/javascript"})));
  const open = new Map();
  let first = {data, weights}, count = 0, fault = null;
  worker.onmessage = ({data: answer}) => {
    if (!answer.error) first = {};
    open.get(answer.id)(answer);
    open.delete(answer.id);
  };
  worker.onerror = event => {
    fault = {error: `This browser cannot run the network: ${event.message || "no worker thread"}.`};
    for (const resolve of open.values()) resolve(fault);
  };
  return question => new Promise(resolve => {
    if (fault) return resolve(fault);
    open.set(++count, resolve);
    worker.postMessage({...question, ...first, id: count});
  });
}

document.addEventListener("DOMContentLoaded", () => {
  try {
    const data = JSON.parse(find("#data").textContent);
    find("#card").append(...cardTexts(data).map(text => element("p", text)));
    new Match(data, startWorker(data, find("#weights").textContent));
  } catch (error) {
    find(".says").textContent = `This page is damaged or was not received whole: ${error.message}. Ask for the file again.`;
    find(".says").classList.add("fault");
  }
});
