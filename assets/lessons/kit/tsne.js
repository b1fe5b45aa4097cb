// t-SNE of few points, step by step: exact sums, as in L. van der Maaten and G. Hinton, "Visualizing Data using t-SNE", 2008.
const TSNE = { exaggeration: 12, early: 100, steps: 500, momentum: [0.5, 0.8], rate: 50, leastGain: 0.01, tries: 60 };

const squaredDistance = (one, other) => one.reduce((sum, value, axis) => sum + (value - other[axis]) ** 2, 0);

// The shares of one point's neighbors whose entropy is that of `perplexity` equal neighbors.
function neighborShares(distances, own, perplexity) {
  let [beta, low, high, shares] = [1, 0, Infinity, []];
  const nearest = Math.min(...distances.filter((_distance, other) => other !== own));
  for (let attempt = 0; attempt < TSNE.tries; attempt += 1) {
    shares = distances.map((distance, other) => (other === own ? 0 : Math.exp(-beta * (distance - nearest))));
    const total = shares.reduce((sum, share) => sum + share, 0);
    shares = shares.map((share) => share / total);
    const entropy = -shares.reduce((sum, share) => sum + (share > 0 ? share * Math.log(share) : 0), 0);
    if (Math.abs(entropy - Math.log(perplexity)) < 1e-7) break;
    if (entropy > Math.log(perplexity)) { low = beta; beta = high === Infinity ? 2 * beta : (beta + high) / 2; } else { high = beta; beta = (beta + low) / 2; }
  }
  return shares;
}

// Symmetric affinities P of points, which sum to 1.
function jointAffinities(points, perplexity) {
  const shares = points.map((point, own) => neighborShares(points.map((other) => squaredDistance(point, other)), own, perplexity));
  return shares.map((row, one) => row.map((share, other) => (share + shares[other][one]) / (2 * points.length)));
}

class LiveTsne {
  constructor(points, perplexity, seed) {
    const random = randomStream(seed);
    Object.assign(this, { affinities: jointAffinities(points, perplexity), done: 0 });
    this.positions = points.map(() => [1e-2 * (random() - 0.5), 1e-2 * (random() - 0.5)]);
    this.speeds = points.map(() => [0, 0]);
    this.gains = points.map(() => [1, 1]);
  }

  get isDone() { return this.done >= TSNE.steps; }

  // The share of each pair on the map, and the kernel 1 / (1 + d²) from which it comes.
  mapShares() {
    const kernel = this.positions.map((one, row) => this.positions.map((other, column) => (row === column ? 0 : 1 / (1 + squaredDistance(one, other)))));
    const total = kernel.reduce((sum, row) => sum + row.reduce((part, value) => part + value, 0), 0);
    return { kernel, total };
  }

  // Kullback-Leibler divergence of the affinities from the map, and its gradient.
  objective(exaggeration = 1) {
    const { kernel, total } = this.mapShares();
    let loss = 0;
    const gradient = this.positions.map((one, row) => {
      const sum = [0, 0];
      this.positions.forEach((other, column) => {
        if (row === column) return;
        const [wanted, shown] = [exaggeration * this.affinities[row][column], kernel[row][column] / total];
        if (wanted > 0) loss += wanted * Math.log(wanted / shown);
        for (const axis of [0, 1]) sum[axis] += 4 * (wanted - shown) * kernel[row][column] * (one[axis] - other[axis]);
      });
      return sum;
    });
    return { loss, gradient };
  }

  step() {
    const isEarly = this.done < TSNE.early;
    const { gradient } = this.objective(isEarly ? TSNE.exaggeration : 1);
    this.positions = this.positions.map((position, row) => position.map((value, axis) => {
      const slope = gradient[row][axis];
      const gain = this.gains[row][axis];
      this.gains[row][axis] = Math.max(slope * this.speeds[row][axis] < 0 ? gain + 0.2 : 0.8 * gain, TSNE.leastGain);
      this.speeds[row][axis] = TSNE.momentum[isEarly ? 0 : 1] * this.speeds[row][axis] - TSNE.rate * this.gains[row][axis] * slope;
      return value + this.speeds[row][axis];
    }));
    this.done += 1;
  }
}
