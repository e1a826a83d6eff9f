// Loaded into a daemon with --import: SIGUSR2 makes its main thread wait, SIGURG makes it spin, each for BLOCK_MS.
const ms = Number(process.env.BLOCK_MS);
process.on('SIGUSR2', () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms));
process.on('SIGURG', () => {
  const until = performance.now() + ms;
  while (performance.now() < until);
});
