// The spiking network on typed arrays, from the weights that Python wrote: batch norm is folded into the convolutions.
// Numbers are float32 as in Python. A product is added before it is rounded, and sums run in another order than there, so
// that results differ in the last digits; a membrane on the very edge between two numbers of spikes may then fire one
// more or less.

class Network {
  // config: NetworkConfig; tensors: name -> Float32Array.
  constructor(config, tensors) {
    this.config = config;
    this.squares = config.height * config.width;
    const {channels, actions, jumps} = config;
    const layer = (name, inputs) => new Convolution(
      part(tensors, `${name}.weight`, channels * inputs * 9), part(tensors, `${name}.bias`, channels), inputs, config);
    this.stem = layer("stem.conv", config.planes);
    this.convolutions = [];
    for (let block = 0; block < config.blocks; block++)
      for (const half of [1, 2]) this.convolutions.push(layer(`blocks.${block}.conv${half}.conv`, channels));
    const planes = actions / this.squares * (jumps.length ? 2 : 1);
    this.policyWeight = part(tensors, "policy.weight", planes * channels);
    this.policyBias = part(tensors, "policy.bias", planes);
    this.value = new ValueHead(config, tensors);
  }

  // planes: Float32Array [planes * squares] -> {wdl: the chances of win, draw and loss for the mover, rates: the spikes of
  // the last layer [squares * channels], layers: the mean spikes on each square, for each layer; [] without spikes}.
  evaluate(planes) {
    const {steps} = this.config;
    const layers = [];
    const fire = currents => {
      const spikes = this.fire(currents);
      if (this.config.activation === "spikes") layers.push(this.meanSpikes(spikes));
      return spikes;
    };
    const first = this.stem.apply(transposed(planes, this.squares));
    let x = Array.from({length: steps}, () => first);
    for (let half = 0; half < this.convolutions.length; half += 2) {
      const inner = fire(x).map(spikes => this.convolutions[half].apply(spikes));
      const outer = fire(inner).map(spikes => this.convolutions[half + 1].apply(spikes));
      x = x.map((shortcut, t) => shortcut.map((current, i) => current + outer[t][i]));
    }
    const spikes = fire(x);
    const rates = spikes[0].map((_, i) => spikes.reduce((sum, step) => sum + step[i], 0) / steps);
    return {wdl: softmax(this.value.apply(rates, planes)), rates, layers};
  }

  // Currents of each time step, Float32Array [squares * channels] -> spikes. The membrane keeps half of what did not fire.
  fire(currents) {
    const membrane = new Float32Array(currents[0].length);
    return currents.map(current => current.map((input, i) => {
      membrane[i] = membrane[i] / 2 + input;
      const spikes = this.spikesOf(membrane[i]);
      membrane[i] = spikes && this.config.reset === "hard" ? 0 : membrane[i] - spikes;
      return spikes;
    }));
  }

  spikesOf(membrane) {
    const {activation, levels} = this.config;
    if (activation === "relu") return Math.max(0, membrane);
    const limited = Math.min(Math.max(membrane, 0), levels);
    if (activation === "clipped") return limited;
    if (levels === 1) return membrane >= 1 ? 1 : 0;
    return Math.fround(limited + 12582912) - 12582912;  // float32 has no fractions up there: halves go to the even number
  }

  meanSpikes(spikes) {
    const {channels} = this.config;
    const mean = new Float32Array(this.squares);
    for (const step of spikes)
      step.forEach((count, i) => { mean[Math.floor(i / channels)] += count / channels / spikes.length; });
    return mean;
  }

  // The policy's logits of some actions, where the last layer fired `rates`.
  logits(rates, actions) {
    const {channels, actions: all, jumps, width, height} = this.config;
    const product = (plane, square) => {
      let sum = this.policyBias[plane];
      for (let c = 0; c < channels; c++)
        sum = Math.fround(sum + rates[square * channels + c] * this.policyWeight[plane * channels + c]);
      return sum;
    };
    return actions.map(action => {
      const plane = Math.floor(action / this.squares), square = action % this.squares;
      if (!jumps.length) return product(plane, square);
      const [columns, rows] = jumps[plane];
      const column = (square % width + columns + width) % width;
      const row = (Math.floor(square / width) + rows + height) % height;
      return product(plane, square) + product(all / this.squares + plane, row * width + column);
    });
  }
}

// A convolution of 3x3 that adds up weights only where there was a spike.
class Convolution {
  constructor(weight, bias, inputs, {channels, height, width}) {
    Object.assign(this, {bias, inputs, outputs: channels, height, width});
    this.kernel = new Float32Array(weight.length);  // [inputs * 9 * outputs], as the loop below reads it
    for (let output = 0; output < channels; output++)
      for (let place = 0; place < inputs * 9; place++)
        this.kernel[place * channels + output] = weight[output * inputs * 9 + place];
  }

  // Float32Array [squares * inputs] -> [squares * outputs].
  apply(spikes) {
    const {kernel, bias, inputs, outputs, height, width} = this;
    const sums = new Float32Array(height * width * outputs);
    for (let start = 0; start < sums.length; start += outputs) sums.set(bias, start);
    for (let row = 0; row < height; row++)
      for (let column = 0; column < width; column++)
        for (let input = 0; input < inputs; input++) {
          const count = spikes[(row * width + column) * inputs + input];
          if (count === 0) continue;
          for (let place = 0; place < 9; place++) {
            const y = row + 1 - Math.floor(place / 3), x = column + 1 - place % 3;
            if (y < 0 || x < 0 || y >= height || x >= width) continue;
            const to = (y * width + x) * outputs, from = (input * 9 + place) * outputs;
            for (let output = 0; output < outputs; output++) sums[to + output] += count * kernel[from + output];
          }
        }
    return sums;
  }
}

// The value head reads the last layer square by square, and the sums over squares of it and of the planes.
class ValueHead {
  constructor({channels, planes, height, width, value_hidden: hidden}, tensors) {
    const squares = height * width, columns = channels * (squares + 1) + planes;
    const weight = part(tensors, "value.0.weight", columns * hidden), scale = Math.sqrt(squares);
    Object.assign(this, {squares, hidden, bias: part(tensors, "value.0.bias", hidden)});
    this.outWeight = part(tensors, "value.2.weight", 3 * hidden);
    this.outBias = part(tensors, "value.2.bias", 3);
    this.ofSpikes = new Float32Array(squares * channels * hidden);  // [squares * channels * hidden]
    this.ofPlanes = new Float32Array(planes * hidden);
    for (let unit = 0; unit < hidden; unit++) {
      const row = unit * columns;
      for (let c = 0; c < channels; c++)
        for (let square = 0; square < squares; square++)
          this.ofSpikes[(square * channels + c) * hidden + unit] =
            weight[row + c * squares + square] + weight[row + channels * squares + c] / scale;
      for (let plane = 0; plane < planes; plane++)
        this.ofPlanes[plane * hidden + unit] = weight[row + channels * (squares + 1) + plane] / scale;
    }
  }

  // The logits of win, draw and loss.
  apply(rates, planes) {
    const {hidden, squares} = this;
    const units = Float32Array.from(this.bias);
    const add = (amount, weights, start) => {
      if (amount !== 0) for (let unit = 0; unit < hidden; unit++) units[unit] += amount * weights[start + unit];
    };
    rates.forEach((rate, i) => add(rate, this.ofSpikes, i * hidden));
    planes.forEach((plane, i) => add(plane, this.ofPlanes, Math.floor(i / squares) * hidden));
    return Array.from(this.outBias, (bias, output) =>
      units.reduce((sum, unit, i) => Math.fround(sum + Math.max(unit, 0) * this.outWeight[output * hidden + i]), bias));
  }
}

// [planes * squares] -> [squares * planes].
function transposed(planes, squares) {
  const depth = planes.length / squares;
  return planes.map((_, i) => planes[(i % depth) * squares + Math.floor(i / depth)]);
}

function softmax(logits) {
  const most = Math.max(...logits);
  const shares = logits.map(logit => Math.exp(logit - most));
  const sum = shares.reduce((total, share) => total + share, 0);
  return shares.map(share => share / sum);
}

// --- the weights of a page

function damaged(why) { return new Error(`This page is damaged: ${why}. Ask for the file again.`); }

function part(tensors, name, length) {
  if (!tensors[name] || tensors[name].length !== length) throw damaged(`the part ${name} of its network does not fit`);
  return tensors[name];
}

// tensors: [[name, count], ...] -> name -> Float32Array. half: they are float16. Throws a sentence.
function readWeights({tensors, half, crc}, base64) {
  let bytes;
  try {
    bytes = Uint8Array.from(atob(base64), letter => letter.charCodeAt(0));
  } catch {
    throw damaged("the network in it cannot be read");
  }
  const size = half ? 2 : 4;
  const count = tensors.reduce((sum, [, length]) => sum + length, 0);
  if (bytes.length !== count * size)
    throw damaged(`its network has ${bytes.length} bytes, expected ${count * size}`);
  if (crc32(bytes) !== crc) throw damaged("its network is not the one that was written (the checksum differs)");
  const numbers = half ? Float32Array.from(new Uint16Array(bytes.buffer), fromHalf) : new Float32Array(bytes.buffer);
  const found = {};
  let start = 0;
  for (const [name, length] of tensors) {
    found[name] = numbers.subarray(start, start + length);
    start += length;
  }
  return found;
}

// The number in 16 bits (IEEE 754 binary16). Python writes finite numbers alone.
function fromHalf(bits) {
  const exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const size = exponent ? (1024 + fraction) * 2 ** (exponent - 25) : fraction * 2 ** -24;
  return bits & 0x8000 ? -size : size;
}

// As zlib.crc32.
function crc32(bytes) {
  const table = Uint32Array.from({length: 256}, (_, number) => {
    for (let bit = 0; bit < 8; bit++) number = number & 1 ? 0xEDB88320 ^ (number >>> 1) : number >>> 1;
    return number;
  });
  let crc = ~0;
  for (const byte of bytes) crc = table[(crc ^ byte) & 255] ^ (crc >>> 8);
  return ~crc >>> 0;
}
