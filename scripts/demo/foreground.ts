import { once } from 'node:events';
import { setStage } from './stage.ts';

/** Starts everything, says what to try and stays until interrupted. */
export async function foreground(): Promise<number> {
  const stage = await setStage({ dataDir: '.holdfast', flags: ['--watch'], quiet: false });
  const stopped = Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM'), once(stage.daemon, 'exit')]);
  const service = JSON.parse(await stage.cli('get', 'service', 'hello', '--output', 'json'));
  const address = service.status.ports[0].listen;
  console.log(`
Three web servers stand behind one address. In another terminal, in this folder, try:

  curl http://${address}/                        once, and again: the servers take turns
  bin/holdfast get services
  bin/holdfast describe service hello
  bin/holdfast top                               while: for i in $(seq 1000); do curl -s http://${address}/ >/dev/null; done
  kill ${stage.backends[1]?.pid ?? ''}                                   one server gone: no request fails
  bin/holdfast status
  bin/holdfast events
  $EDITOR ${stage.manifest}      change a weight and save: it is applied at once

Ctrl-C ends everything. The state stays in .holdfast; the address will be the same next time.
`);
  await stopped;
  await stage.stop();
  return 0;
}
