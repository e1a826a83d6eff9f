import { type Answer, errorAnswer } from '../../domain/instruction/model.js';
import type { ScriptPlan } from '../../domain/instruction/plan.js';
import { type ScriptSources, scriptUrl } from '../../domain/instruction/script.js';
import { cutTwoForJson } from '../../domain/instruction/text.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { Task, TaskExit, TaskId, TaskRunner } from '../../ports/instruction/task-runner.js';
import type { WebClient } from '../../ports/outbound/web-client.js';
import { download } from './download.js';
import type { EffectContext } from './effects.js';

/** A larger one is refused: half a script would be another script. */
const MAX_SCRIPT_BYTES = 8 * 1024 * 1024;
/** Of each stream. */
const MAX_OUTPUT_BYTES = 2 * 1024 * 1024;
/** Between looks at whether a task has begun. */
const LOOK_MS = 20;

export interface ScriptEffectParts {
  readonly web: WebClient;
  readonly tasks: TaskRunner;
  readonly clock: Clock;
  /** Hex. */
  readonly sha256: (data: string | Uint8Array) => string;
  /** Asked for each script. */
  readonly sources: () => ScriptSources;
  /** The whole environment of a script. */
  readonly env: Readonly<Record<string, string>>;
}

/** A shell script that the control plane names, fetched and run. */
export class ScriptEffect {
  readonly #parts: ScriptEffectParts;

  constructor(parts: ScriptEffectParts) {
    this.#parts = parts;
  }

  /** @throws AgentError `instruction.not_started`, `instruction.interrupted`, `outbound.*`; on abort a started task goes on */
  async run(plan: ScriptPlan, context: EffectContext): Promise<Answer> {
    const body = await this.#fetch(plan, context);
    const digest = this.#parts.sha256(body);
    if (plan.sha256 !== undefined && plan.sha256 !== digest)
      return errorAnswer(`${plan.script}: its SHA-256 is ${digest}, not ${plan.sha256}; it was not run`);
    const step = `body ${digest}`;
    if (context.step !== undefined && context.step !== step)
      return errorAnswer(
        `INTERRUPTED: it had reached: ${context.step}; what is served now is another script (${digest}) and was not run`,
      );
    await context.reached(step);
    context.signal.throwIfAborted();
    const task = this.#task(plan, context.task, body);
    if (plan.background) return this.#startOnly(task, context);
    return scriptAnswer(await this.#parts.tasks.run(task, context));
  }

  async #fetch({ script, params }: ScriptPlan, { signal }: CallOptions): Promise<Uint8Array> {
    const encoded = Buffer.from(JSON.stringify(params)).toString('base64');
    const url = scriptUrl(this.#parts.sources(), script, encoded);
    if (url === undefined)
      throw new AgentError('instruction.no_source', { problem: `${script}: no server for it is configured` });
    // Not guarded: whoever configured the server may have it on this machine.
    const body = await download(this.#parts.web, { url, guarded: false, maxBytes: MAX_SCRIPT_BYTES }, { signal });
    if (body.length === 0) throw new AgentError('outbound.failed', { problem: `${url} answered with an empty script` });
    return body;
  }

  #task({ timeoutMs }: ScriptPlan, id: TaskId, body: Uint8Array): Task {
    const { env } = this.#parts;
    const argv = ['/bin/bash', '%f/script'] as const;
    return { id, argv, env, cwd: '/', files: { script: body }, timeoutMs, maxOutputBytes: MAX_OUTPUT_BYTES };
  }

  /** Answers as soon as it runs; its end is nobody's. */
  async #startOnly(task: Task, { signal }: CallOptions): Promise<Answer> {
    const { tasks, clock } = this.#parts;
    const ended = tasks.run(task, { signal }).then(
      () => undefined,
      (error: unknown) => error,
    );
    let over = false;
    void ended.then(() => {
      over = true;
    });
    while (!over && (await tasks.state(task.id, { signal })).kind === 'not_started') await clock.sleep(LOOK_MS, { signal });
    // It may be over because it could not be started at all.
    if (over && (await tasks.state(task.id, { signal })).kind === 'not_started') throw await ended;
    return BACKGROUND_ANSWER;
  }
}

/** Scheduled, not done. */
export const BACKGROUND_ANSWER: Answer = {
  kind: 'json',
  type: 'RUN_REMOTE_SCRIPT_RESPONSE',
  value: { response: 'scheduled', stderr: '', exitCode: 0, timedOut: false },
};

/** A script that fails is a normal response. Output that is no UTF-8 has U+FFFD in its place. */
export function scriptAnswer({ exitCode, timedOut, cancelled, startError, stdout, stderr }: TaskExit): Answer {
  if (cancelled) return errorAnswer(CANCELLED_RUNNING);
  const own = startError === undefined ? '' : `/bin/bash could not be started: ${startError}`;
  const [response, errors] = cutTwoForJson(
    { text: new TextDecoder().decode(stdout.bytes), dropped: stdout.dropped },
    { text: own + new TextDecoder().decode(stderr.bytes), dropped: stderr.dropped },
  );
  return { kind: 'json', type: 'RUN_REMOTE_SCRIPT_RESPONSE', value: { response, stderr: errors, exitCode, timedOut } };
}

export const CANCELLED_RUNNING = 'CANCELLED: may have taken effect';
