import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { runnerPath } from '../../src/adapters/instruction/runner-process.js';
import { sourceArguments } from '../../src/adapters/threads/typescript-worker.js';
import { base64, contentOf } from '../support/instruction-rig.js';
import { tempFolder } from '../support/temp-folder.js';

const PROGRAM = fileURLToPath(new URL('./support/instruction-agent.ts', import.meta.url));
const SCRIPTS = 60;
const MOST_LIVES = 60;

/** One life of the agent; what it answers is confirmed, most of the time. */
async function live(folder: string, answers: Map<string, string>, killAfterMs: number | undefined): Promise<void> {
  const args = [...sourceArguments, PROGRAM, folder, runnerPath(process.env.HOLDFAST_RUNNER), `${SCRIPTS}`];
  const agent = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  agent.stdin.on('error', () => {});
  const tell = (message: object) => agent.stdin.write(`${JSON.stringify(message)}\n`);
  for (let number = 0; number < SCRIPTS; number++) {
    const payload = { script: `s${number}`, ...(number % 3 === 0 ? { lane: 'x' } : {}) };
    if (!answers.has(`t${number}`))
      tell({ type: 'RUN_REMOTE_SCRIPT', tag: `t${number}`, jsonB64: base64(payload), expiresInMs: 3_600_000 });
  }
  for await (const line of createInterface(agent.stdout)) {
    if (line === 'ready' && killAfterMs !== undefined) setTimeout(() => agent.kill('SIGKILL'), killAfterMs);
    // The last line may be cut by the kill.
    if (!line.endsWith('}')) continue;
    const message = JSON.parse(line);
    const content = contentOf(message);
    expect(content).toBe(answers.get(message.tag) ?? content);
    answers.set(message.tag, content);
    tell({ type: 'RESULT_ACK', tag: message.tag, jsonB64: 'e30=' });
    if (answers.size === SCRIPTS) agent.kill('SIGKILL');
  }
  if (agent.exitCode === null && agent.signalCode === null) await once(agent, 'exit');
  expect(agent.signalCode).toBe('SIGKILL');
}

test('the witness: under kill -9 at any moment each script runs once, and its true result arrives', {
  timeout: 240_000,
}, async () => {
  const folder = await tempFolder();
  const answers = new Map<string, string>();
  let lives = 0;
  for (; answers.size < SCRIPTS && lives < MOST_LIVES; lives++) {
    await live(folder, answers, 5 + ((lives * 37) % 230));
  }
  if (answers.size < SCRIPTS) await live(folder, answers, undefined);
  const witness = (await readFile(join(folder, 'witness'), 'utf8')).trim().split('\n').map(Number);
  expect(witness.toSorted((a, b) => a - b)).toEqual(Array.from({ length: SCRIPTS }, (_, number) => number));
  for (let number = 0; number < SCRIPTS; number++) {
    expect(JSON.parse(answers.get(`t${number}`) ?? '{}')).toEqual({
      response: `end ${number}\n`,
      stderr: '',
      exitCode: 0,
      timedOut: false,
    });
  }
  // One lane keeps its order.
  expect(witness.filter((number) => number % 3 === 0)).toEqual(Array.from({ length: SCRIPTS / 3 }, (_, number) => number * 3));
});
