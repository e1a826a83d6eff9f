import { execFile, type spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { ThrowawayPki } from '../support/throwaway-pki.js';
import { temporaryFolder } from '../system/support/daemon.js';
import { FleetDaemon, until } from '../system/support/fleet-daemon.js';
import { FleetNetwork, spawnIn } from '../system/support/fleet-network.js';

const hasGo = spawnSync('go', ['version'], { stdio: 'ignore' }).status === 0;
const IDLE_S = Number(process.env.HOLDFAST_TEST_IDLE_SECONDS ?? 40);

/** What the server in Go has said so far. */
class Peer implements AsyncDisposable {
  readonly lines: string[] = [];
  readonly #child: ReturnType<typeof spawn>;

  constructor(child: ReturnType<typeof spawn>) {
    this.#child = child;
    if (child.stdout !== null) createInterface({ input: child.stdout }).on('line', (line) => this.lines.push(line));
  }

  count(word: string): number {
    return this.lines.filter((line) => line.startsWith(`${word} `)).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
  }
}

test.skipIf(!hasGo)(
  `an idle agent keeps its stream and its connections to a grpc-go server with default enforcement, ${IDLE_S} s`,
  {
    timeout: (IDLE_S + 300) * 1_000,
  },
  async () => {
    await using stack = new AsyncDisposableStack();
    const { path: folder } = stack.use(await temporaryFolder());
    const network = stack.use(await FleetNetwork.make());
    const program = join(folder, 'peer-go');
    await promisify(execFile)('go', ['build', '-o', program, '.'], { cwd: import.meta.dirname });
    const pki = stack.adopt(new ThrowawayPki(), (made) => made.remove());
    const server = pki.issue({ name: 'server', san: ['DNS:localhost', 'IP:127.0.0.1'], usage: 'serverAuth' });
    const node = pki.issue({ name: 'node-17', usage: 'clientAuth' });
    const data = join(folder, 'agent/data');
    await mkdir(join(data, 'certs'), { recursive: true, mode: 0o700 });
    const write = (file: string, text: string) => writeFile(join(folder, file), text, { mode: 0o600 });
    await Promise.all([write('ca', pki.root), write('crt', server.certificate), write('key', server.privateKey)]);
    await Promise.all([
      write('agent/data/certs/ca.crt', pki.root),
      write('agent/data/certs/mtls.crt', node.certificate),
      write('agent/data/certs/mtls.key', node.privateKey),
    ]);
    const argv = [program, ...['ca', 'crt', 'key'].map((file) => join(folder, file))];
    const peer = stack.use(new Peer(spawnIn(network.hub, argv, { stdio: ['ignore', 'pipe', 'inherit'] })));
    const [said = ''] = await until(
      async () => peer.lines,
      ({ length }) => length > 0,
    );
    const enrolment = { servers: [`localhost:${said.slice('port '.length)}`], nid: 'node-17', aid: 'acme' };
    await write('agent/data/enrolment.json', JSON.stringify(enrolment));
    const flags = ['--metrics-listen', 'off'];
    const agent = new FleetDaemon({ verb: 'agent', space: network.hub, root: join(folder, 'agent'), flags });
    stack.defer(async () => void (await agent.stop('SIGKILL')));
    await agent.start();
    await until(
      async () => peer.count('beat'),
      (beats) => beats > 0,
    );
    const before = peer.count('beat');
    await sleep(IDLE_S * 1_000);
    const rest = peer.lines.filter((line) => !/^(beat|connected|port) /.test(line));
    expect(rest).toEqual(['opened 1']);
    // One each 5 s.
    expect(peer.count('beat') - before).toBeGreaterThan(IDLE_S / 5 / 2);
  },
);
