// Looking ahead as search.py's two_rung does: the 8 moves that look best are tried, then the best reply to the best 4 of
// them. Wins that the rules prove are never averaged with a guess.

const CANDIDATES = 8, SURVIVORS = 4;
const EVALUATIONS = 1 + CANDIDATES + SURVIVORS;
const MAXVISIT_INIT = 50, VALUE_SCALE = 0.3;

// What the network says of the position: {moves, logits, value, wdl, layers}, value = win - loss for the mover.
function opinionOf(game, network) {
  const seen = network.evaluate(game.observe());
  const {moves} = game;
  const logits = network.logits(seen.rates, moves.map(move => move.action));
  return {moves, logits, value: seen.wdl[0] - seen.wdl[2], wdl: seen.wdl, layers: seen.layers};
}

// The action to play. noise: a number for each legal move, added to its logit; lookahead: false plays what it likes best.
function choose(game, network, opinion, noise, lookahead, discount) {
  const win = opinion.moves.filter(move => move.wins).pop();
  if (lookahead && win) return win.action;
  const ranked = opinion.moves.map((move, i) => ({action: move.action, score: opinion.logits[i] + noise[i]}));
  ranked.sort(byScore);
  if (!lookahead) return ranked[0].action;
  const considered = ranked.slice(0, CANDIDATES);
  for (const move of considered) move.first = tried(game, network, move.action, discount);
  const ratings = visits => {
    const values = [opinion.value, ...considered.map(move => move.q)];
    const low = Math.min(...values), range = Math.max(Math.max(...values) - low, 1e-8);
    const scale = (MAXVISIT_INIT + visits) * VALUE_SCALE;
    return considered.map(move => ({move, score: move.score + scale * (move.q - low) / range}));
  };
  for (const move of considered) move.q = worth(move.first);
  const survivors = ratings(1).sort(byScore).slice(0, SURVIVORS).map(each => each.move);
  for (const move of survivors) move.q = afterBestReply(game, network, move, discount);
  return ratings(2).filter(each => survivors.includes(each.move)).sort(byScore)[0].move.action;
}

const byScore = (one, other) => other.score - one.score;
const worth = ({reward, discount, value}) => reward + discount * value;

// Play an action, look at the position, and take it back: {reward, discount, value, proven, reply}. reply: the action that
// the other player likes best there.
function tried(game, network, action, discount) {
  game.push(action);
  let seen;
  if (game.over) {
    seen = {reward: -game.reward(), discount: 0, value: 0, proven: false};
  } else {
    const {moves, logits, value} = opinionOf(game, network);
    const proven = moves.some(move => move.wins);
    const reply = moves[logits.indexOf(Math.max(...logits))].action;
    seen = {reward: 0, discount: -discount, value: proven ? 1 : value, proven, reply};
  }
  game.pop();
  return seen;
}

// The worth of a move after a look at the reply to it: the mean of two looks, or what the rules prove.
function afterBestReply(game, network, {action, first}, discount) {
  if (first.discount === 0 || first.proven) return worth(first);
  game.push(action);
  const second = tried(game, network, first.reply, discount);
  game.pop();
  if (second.discount === 0 && second.reward > 0) return first.discount * second.reward;
  return first.discount * (first.value + worth(second)) / 2;
}

// --- in a worker thread, so that the page stays alive while the network thinks

if (typeof importScripts === "function") {
  let page, game, network;
  onmessage = ({data: {id, data, weights, actions, play, lookahead, noise}}) => {
    try {
      if (data) {
        page = data;
        game = makeGame(page);
        network = new Network(page.network, readWeights(page, weights));
      }
      game.become(actions);
      if (game.over) return postMessage({id});
      const opinion = opinionOf(game, network);
      const drawn = opinion.moves.map(() => noise * gumbel());
      const action = play ? choose(game, network, opinion, drawn, lookahead, page.game.discount) : null;
      postMessage({id, action, opinion: told(game, opinion)});
    } catch (error) {
      postMessage({id, error: error.message});
    }
  };
}

const gumbel = () => -Math.log(-Math.log(Math.random() || 0.5));

// An opinion as the page shows it: chances of the first player, the likeliest moves, spikes by square as drawn.
function told(game, {moves, logits, wdl, layers}) {
  const shares = softmax(logits);
  const written = game.written();
  const likeliest = moves.map(({path}, i) => ({path, text: written[i], share: shares[i]}));
  likeliest.sort((one, other) => other.share - one.share);
  const drawn = layer => layer.map((_, square) => layer[game.seen(square)]);
  return {chances: game.turn ? [...wdl].reverse() : wdl, likeliest: likeliest.slice(0, 5), layers: layers.map(drawn)};
}
