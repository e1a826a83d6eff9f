import { AgentError } from '../../domain/kernel/errors.js';
import { formatIpv4Range, type Ipv4Range } from '../../domain/kernel/network.js';
import { networkOf, OVERLAY_DEVICE, OVERLAY_PORT } from '../../domain/overlay/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { CommandRunner } from '../../ports/command/command-runner.js';

const CALL_MS = 20_000;
/** By which our rules are known from those of people. */
const COMMENT = 'holdfast overlay';

/** What a ufw that is active lets in from the overlay. Where there is no ufw, or it is not active, nothing is done. */
export class UfwRanges {
  readonly #commands: CommandRunner;

  constructor(commands: CommandRunner) {
    this.#commands = commands;
  }

  /** Lets these in and no others of ours; the same again changes nothing. @throws AgentError `overlay.not_set` */
  async set(ranges: readonly Ipv4Range[], options: CallOptions): Promise<void> {
    await this.#become(new Set([portRule, ...ranges.map(rangeRule)]), options);
  }

  /** Lets nothing of ours in. @throws AgentError `overlay.not_set` */
  async clear(options: CallOptions): Promise<void> {
    await this.#become(new Set(), options);
  }

  async #become(wanted: ReadonlySet<string>, options: CallOptions): Promise<void> {
    const added = await this.#added(options);
    if (added === undefined) return;
    for (const rule of wanted) if (!added.has(rule)) await this.#ufw([...rule.split(' '), 'comment', COMMENT], options);
    for (const rule of added) if (!wanted.has(rule)) await this.#ufw(['delete', ...rule.split(' ')], options);
  }

  /** Ours, without their comment; undefined where ufw is not active. */
  async #added(options: CallOptions): Promise<ReadonlySet<string> | undefined> {
    try {
      const { stdout } = await this.#ufw(['status'], options);
      if (!/^Status: active$/m.test(stdout)) return undefined;
    } catch (error) {
      if (error instanceof AgentError && error.code === 'command.not_found') return undefined;
      throw error;
    }
    const { stdout } = await this.#ufw(['show', 'added'], options);
    const ours = [...stdout.matchAll(/^ufw (allow .*) comment '([^']*)'$/gm)].filter(([, , comment]) => comment === COMMENT);
    return new Set(ours.map(([, rule = '']) => normal(rule)));
  }

  async #ufw(args: readonly string[], options: CallOptions) {
    const result = await this.#commands.run({ argv: ['ufw', ...args], timeoutMs: CALL_MS }, options);
    if (result.exitCode === 0) return result;
    throw new AgentError('overlay.not_set', {
      problem: `ufw ${args.join(' ')}: ${result.stderr.trim() || result.stdout.trim()}`,
    });
  }
}

const portRule = `allow ${OVERLAY_PORT}/udp`;

function rangeRule(range: Ipv4Range): string {
  return `allow in on ${OVERLAY_DEVICE} from ${formatIpv4Range(range)}`;
}

/** ufw writes a network of one as its address. */
function normal(rule: string): string {
  const match = /^(allow in on \S+ from) ([\d./]+)$/.exec(rule);
  const range = match?.[2] === undefined ? undefined : networkOf(match[2]);
  return range === undefined ? rule : `${match?.[1]} ${formatIpv4Range(range)}`;
}
