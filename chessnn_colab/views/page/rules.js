// The rules of the games that a page plays: chess by chess.js, and stones on a grid. Both say what the network sees and
// number actions as Python does. Squares are numbered row after row from the top, as the first player sees the board.

class Game {
  constructor(names, players) {
    this.names = names;
    this.players = players;
    this.actions = [];
  }
  get turn() { return this.actions.length % 2; }
  get over() { return this.now.end !== null; }
  // The legal moves: {action, path: the squares that one clicks, wins, choice: what a pawn becomes}.
  get moves() { return this.over ? [] : this.now.moves; }
  ending() {
    const {how, score} = this.now.end;
    return `${how}: ${score ? `${this.players[score > 0 ? 0 : 1]} won` : "drawn"}.`;
  }
  // What the player to move has won by an end of the game: 1, 0 or -1.
  reward() { return this.turn ? -this.now.end.score : this.now.end.score; }
  // A legal action as its players write it.
  textOf(action) { return this.written()[this.moves.findIndex(move => move.action === action)]; }
  // Play and take back until the game is the one with these actions.
  become(actions) {
    let same = 0;
    while (same < this.actions.length && this.actions[same] === actions[same]) same++;
    while (this.actions.length > same) this.pop();
    for (const action of actions.slice(same)) this.push(action);
  }
}

// --- chess

const KINDS = "PNBRQK";
const DIRECTIONS = [[0, 1], [1, 0], [1, 1], [-1, 1], [0, -1], [-1, 0], [-1, -1], [1, -1]];  // files and ranks
const KNIGHT_JUMPS = [[1, 2], [-1, 2], [2, 1], [-2, 1], [-1, -2], [1, -2], [-2, -1], [2, -1]];
const CLOCK_MARKS = [8, 16, 32, 56, 80];  // plies without a capture or a pawn move
const CHOICES = {q: "Queen", r: "Rook", b: "Bishop", n: "Knight"};
const MOVE_PLANES = movePlanes();

// "files,ranks,underpromotion" -> the number of the plane of actions.
function movePlanes() {
  const names = [];
  for (const [files, ranks] of DIRECTIONS)
    for (let steps = 1; steps < 8; steps++) names.push(`${steps * files},${steps * ranks},`);
  for (const [files, ranks] of KNIGHT_JUMPS) names.push(`${files},${ranks},`);
  for (const piece of "nbr") for (const files of [-1, 0, 1]) names.push(`${files},1,${piece}`);
  return new Map(names.map((name, plane) => [name, plane]));
}

// It takes chess.js's inner list of moves (its methods with an underscore), whose squares are 16 * row + column:
// moves({verbose: true}) takes fifty times as long.
class ChessGame extends Game {
  constructor(names, players) {
    super(names, players);
    this.board = new ChessRules.Chess();
    this.past = [];
    this.enter();
  }
  get now() { return this.past[this.past.length - 1]; }

  push(action) {
    const last = this.now.moves.find(move => move.action === action);
    this.board._makeMove(last.move);
    this.actions.push(action);
    this.enter(last);
  }

  pop() {
    this.board._undoMove();
    this.actions.pop();
    this.past.pop();
  }

  // Work out all that follows from the position that has just been reached.
  enter(last = null) {
    const fields = this.board.fen().split(" ");
    const key = fields.slice(0, 4).join(" ");
    const repetitions = 1 + this.past.filter(position => position.key === key).length;
    const moves = this.board._moves().map(move => this.described(move));
    const now = {last, key, placement: fields[0], rights: fields[2], clock: Number(fields[4]), repetitions, moves};
    now.check = this.board.isCheck();
    now.end = this.judge(now);
    this.past.push(now);
  }

  judge({moves, check, repetitions, clock}) {
    if (!moves.length) return check ? {how: "Checkmate", score: this.turn ? 1 : -1} : {how: "Stalemate", score: 0};
    if (this.board.isInsufficientMaterial()) return {how: "Insufficient material", score: 0};
    if (repetitions >= 3) return {how: "Third repetition", score: 0};
    if (clock >= 100) return {how: "Fifty moves without a capture or a pawn move", score: 0};
    return null;
  }

  described(move) {
    const path = [move.from, move.to].map(square => 8 * (square >> 4) + (square & 7));
    const [start, target] = path.map(square => this.seen(square));
    const files = target % 8 - start % 8;
    const ranks = (target >> 3) - (start >> 3);
    const {promotion = "q"} = move;
    const plane = MOVE_PLANES.get(`${files},${ranks},${promotion === "q" ? "" : promotion}`);
    this.board._makeMove(move);
    const wins = this.board.isCheckmate();
    this.board._undoMove();
    return {action: 64 * plane + start, path, wins, move, choice: CHOICES[move.promotion]};
  }

  // Every legal move as players write it, such as Nf3.
  written() { return this.over ? [] : this.board.moves(); }

  // The network's number of a square, which is also the way back: a1 is 0 for White, and a8 for Black.
  seen(square) { return this.turn ? square : square ^ 56; }

  // Letters of the pieces by square, "" where none stands.
  squares() {
    const spread = this.now.placement.replace(/\d/g, count => " ".repeat(count)).replaceAll("/", "");
    return [...spread].map(letter => letter.trim());
  }

  last() { return this.now.last ? this.now.last.path : []; }
  alarms() { return this.now.check ? [this.squares().indexOf(this.turn ? "k" : "K")] : []; }

  // Float32Array [27 * 64], the planes of games/chess/rules.py: the mover's pieces are the capitals here.
  observe() {
    const {last, rights, clock, repetitions, check} = this.now;
    const standing = this.squares();
    const board = Array.from({length: 64}, (_, square) => swapped(standing[this.seen(square)], this.turn));
    const planes = new Float32Array(27 * 64);
    const fill = plane => planes.fill(1, 64 * plane, 64 * (plane + 1));
    board.forEach((letter, square) => {
      if (letter) planes[64 * (KINDS + KINDS.toLowerCase()).indexOf(letter) + square] = 1;
    });
    const jumped = last && last.move.piece === "p" && Math.abs(last.path[1] - last.path[0]) === 16;
    if (jumped) planes[64 * 12 + 40 + last.path[1] % 8] = 1;
    for (const square of attacked(board, true)) planes[64 * 13 + square] = 1;
    for (const square of attacked(board, false)) planes[64 * 14 + square] = 1;
    [..."KQkq"].forEach((right, place) => { if (rights.includes(swapped(right, this.turn))) fill(15 + place); });
    if (repetitions > 1) fill(19);
    if (check) fill(20);
    fill(21);
    CLOCK_MARKS.forEach((mark, place) => { if (clock >= mark) fill(22 + place); });
    return planes;
  }

  // The action that is meant by e2e4, Nf3, exd5 or a8=Q. Throws a sentence.
  parse(text) {
    const plain = move => move.replace(/[+#x=!?\s]/g, "").replaceAll("0", "O");
    const written = this.written();
    const squares = this.moves.map(({path, move}) => path.map(square => this.names[square]).join("") + (move.promotion || ""));
    let found = written.map(plain).indexOf(plain(text));
    if (found < 0) found = squares.indexOf(plain(text).toLowerCase());
    if (found >= 0) return this.moves[found].action;
    throw new Error(`“${text}” is not a legal move here. Type one such as ${squares[0]} or ${written[0]}.`);
  }
}

function swapped(letter, turn) {
  if (!turn) return letter;
  return letter === letter.toUpperCase() ? letter.toLowerCase() : letter.toUpperCase();
}

// The squares that the capitals (own) or the small letters attack. The small letters see through the king K, which cannot
// hide behind itself.
function attacked(board, own) {
  const found = new Set();
  const isOwn = letter => letter === letter.toUpperCase();
  const reach = (square, [files, ranks], most) => {
    let file = square % 8 + files, rank = (square >> 3) + ranks;
    for (let steps = 0; steps < most && file >= 0 && file < 8 && rank >= 0 && rank < 8; steps++) {
      const target = 8 * rank + file;
      found.add(target);
      if (board[target] && (own || board[target] !== "K")) break;
      file += files;
      rank += ranks;
    }
  };
  const north = own ? 1 : -1;
  const leaps = {P: [[1, north], [-1, north]], N: KNIGHT_JUMPS, K: DIRECTIONS};
  const straight = DIRECTIONS.filter(([files, ranks]) => !files || !ranks);
  const diagonal = DIRECTIONS.filter(([files, ranks]) => files && ranks);
  const slides = {B: diagonal, R: straight, Q: DIRECTIONS};
  board.forEach((letter, square) => {
    if (!letter || isOwn(letter) !== own) return;
    const kind = letter.toUpperCase();
    for (const jump of leaps[kind] || []) reach(square, jump, 1);
    for (const direction of slides[kind] || []) reach(square, direction, 7);
  });
  return found;
}

// --- stones on a grid: Gomoku and tic-tac-toe

class StoneGame extends Game {
  // fives: the network sees where a line would be completed. exact: not more stones in a row win, either. line: how many.
  constructor({name, player_names: players}, {names, columns, glyphs}) {
    super(names, players);
    this.fives = name.startsWith("gomoku");
    this.exact = name.endsWith(":exact");
    this.line = this.fives ? 5 : 3;
    this.size = columns;
    this.glyphs = Object.keys(glyphs);
    this.cells = new Int8Array(columns * columns);  // 0 empty, 1 and 2 the players
    this.ends = [null];
  }

  get now() {
    const stone = this.turn + 1;
    const empty = [...this.cells.keys()].filter(cell => !this.cells[cell]);
    const moves = empty.map(cell => (
      {action: cell, path: [cell], wins: this.completes(cell, stone)}));
    return {end: this.ends[this.ends.length - 1], moves};
  }
  get over() { return this.ends[this.ends.length - 1] !== null; }

  push(cell) {
    const stone = this.turn + 1;
    const won = this.completes(cell, stone);
    this.cells[cell] = stone;
    this.actions.push(cell);
    const how = `${this.line === 3 ? "Three" : "Five"} in a row`;
    const full = this.actions.length === this.cells.length ? {how: "Board full", score: 0} : null;
    this.ends.push(won ? {how, score: stone === 1 ? 1 : -1} : full);
  }

  pop() {
    this.cells[this.actions.pop()] = 0;
    this.ends.pop();
  }

  // The longest row of `stone` through a cell in each direction, as lists of cells.
  rows(cell, stone) {
    const row = Math.floor(cell / this.size), column = cell % this.size;
    return [[0, 1], [1, 0], [1, 1], [1, -1]].map(([down, right]) => {
      const found = [cell];
      for (const way of [1, -1]) {
        for (let step = way; ; step += way) {
          const y = row + step * down, x = column + step * right;
          const inside = y >= 0 && x >= 0 && y < this.size && x < this.size;
          if (!inside || this.cells[y * this.size + x] !== stone) break;
          found.push(y * this.size + x);
        }
      }
      return found;
    });
  }

  wins(row) { return this.exact ? row.length === this.line : row.length >= this.line; }

  completes(cell, stone) {
    return this.rows(cell, stone).some(row => this.wins(row));
  }

  written() { return this.moves.map(move => this.names[move.action]); }
  seen(square) { return square; }
  squares() { return [...this.cells].map(stone => stone ? this.glyphs[stone - 1] : ""); }
  last() { return this.actions.slice(-1); }
  alarms() {
    const last = this.last()[0];
    if (!this.over || !this.now.end.score) return [];
    return this.rows(last, this.cells[last]).filter(row => this.wins(row)).flat();
  }

  // Float32Array: the planes of games/gomoku/rules.py, or the three of games/tictactoe.py.
  observe() {
    const mine = this.turn + 1, cells = [...this.cells];
    const planes = [cells.map(stone => stone === mine), cells.map(stone => stone === 3 - mine)];
    if (this.fives)
      for (const stone of [mine, 3 - mine])
        planes.push(cells.map((there, cell) => !there && this.completes(cell, stone)));
    planes.push(cells.map(() => 1));
    return Float32Array.from(planes.flat());
  }

  parse(text) {
    const cell = this.names.indexOf(text.trim().toLowerCase());
    if (cell >= 0 && !this.cells[cell]) return cell;
    const [free] = this.written();
    throw new Error(`“${text}” is ${cell < 0 ? "no square here" : "taken"}. Type a free square, such as ${free}.`);
  }
}

// data: what Python wrote into the page.
function makeGame({game, drawing}) {
  return game.name === "chess" ? new ChessGame(drawing.names, game.player_names) : new StoneGame(game, drawing);
}
