import type { FirewallTable } from '../../domain/preflight/firewall.js';
import type { Answer, PreflightFacts, RepositoryState, Wanted } from '../../domain/preflight/model.js';
import { readIptables } from '../../domain/preflight/read-iptables.js';
import { readNft } from '../../domain/preflight/read-nft.js';
import { readSourceLines, readSourceParagraphs, releaseUrl, SIGNED, type Source } from '../../domain/preflight/repositories.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { CommandRunner } from '../../ports/command/command-runner.js';
import { askHttp } from './ask-http.js';
import { askServerClock } from './ask-server-clock.js';
import { askUdpEcho } from './ask-udp-echo.js';
import type { MachineReader } from './machine-reader.js';

const COMMAND_MS = 4_000;
/** Sources of a machine are a handful; what a broken file names beyond is not asked. */
const MAX_ASKED = 32;
/** apt follows as many (apt-transport-http(1)): mirrors send to what is near. */
const MAX_REDIRECTS = 10;
const SOURCES = '/etc/apt/sources.list';
const SOURCE_FOLDER = '/etc/apt/sources.list.d';
const SETTINGS = '/etc/apt/apt.conf';
const SETTING_FOLDER = '/etc/apt/apt.conf.d';
const PROXY = /^\s*Acquire::https?::(proxy|proxy-auto-detect)\b/im;

export interface NetworkProberParts {
  readonly files: MachineReader;
  readonly commands: CommandRunner | undefined;
  readonly clock: Clock;
}

/** What stands between a machine and others: who answers, and what its own firewall drops. */
export class NetworkProber {
  readonly #parts: NetworkProberParts;

  constructor(parts: NetworkProberParts) {
    this.#parts = parts;
  }

  async answers({ targets = [] }: Wanted, signal: AbortSignal): Promise<readonly Answer[]> {
    return Promise.all(targets.map((url) => this.#ask(url, signal)));
  }

  async knownAnswer({ knownAnswer }: Wanted, signal: AbortSignal): Promise<Answer | undefined> {
    return knownAnswer === undefined ? undefined : this.#ask(knownAnswer, signal);
  }

  async serverClock({ server }: Wanted, signal: AbortSignal): Promise<Answer | undefined> {
    return server === undefined ? undefined : askServerClock(server, () => this.#parts.clock.now(), signal);
  }

  async udpEcho({ udpEcho }: Wanted, signal: AbortSignal): Promise<PreflightFacts['udpEcho']> {
    return udpEcho === undefined ? undefined : askUdpEcho(udpEcho, signal);
  }

  /** Undefined where there is no apt. Not asked where apt has a proxy of its own: what comes to us says nothing of it. */
  async repositories({ asksRepositories }: Wanted, signal: AbortSignal): Promise<readonly RepositoryState[] | undefined> {
    const sources = await this.#sources();
    if (sources === undefined || asksRepositories !== true || (await this.#hasProxy())) return sources;
    const asked = sources.filter(({ uri }) => /^https?:/.test(uri)).slice(0, MAX_ASKED);
    const states = asked.map(async (source): Promise<RepositoryState> => {
      const answer = await this.#follow(releaseUrl(source), signal);
      if ('failed' in answer) return { ...source, answer: { failed: answer.failed } };
      const isSigned = answer.status === 200 && answer.begin.startsWith(SIGNED);
      return { ...source, answer: { status: answer.status, isSigned } };
    });
    return [...(await Promise.all(states)), ...sources.filter((source) => !asked.includes(source))];
  }

  /** Of the programs that are there; undefined when none is. */
  async firewall(options: CallOptions): Promise<readonly FirewallTable[] | undefined> {
    const [nft, iptables] = await Promise.all([
      this.#said(['nft', '--json', 'list', 'ruleset'], options),
      this.#said(['iptables', '--list-rules'], options),
    ]);
    if (nft === undefined && iptables === undefined) return undefined;
    const tables = nft === undefined ? [] : readNft(nft);
    // It knows more of its own table than nft, which shows its extensions as nothing.
    return iptables === undefined ? tables : [...tables.filter(({ name }) => name !== 'nft ip filter'), readIptables(iptables)];
  }

  #ask(url: string, signal: AbortSignal): Promise<Answer> {
    return askHttp({ url, now: () => this.#parts.clock.now() }, signal);
  }

  async #follow(url: string, signal: AbortSignal): Promise<Answer> {
    let answer = await this.#ask(url, signal);
    for (let redirect = 0; redirect < MAX_REDIRECTS; redirect++) {
      const next = 'failed' in answer || answer.location === undefined ? null : URL.parse(answer.location, answer.url);
      if (next === null || !/^https?:$/.test(next.protocol)) break;
      answer = await this.#ask(next.href, signal);
    }
    return answer;
  }

  async #hasProxy(): Promise<boolean> {
    const { files } = this.#parts;
    const names = (await files.names(SETTING_FOLDER)) ?? [];
    const texts = await Promise.all(
      [SETTINGS, ...names.map((name) => `${SETTING_FOLDER}/${name}`)].map((path) => files.text(path)),
    );
    return texts.some((text) => text !== undefined && PROXY.test(text));
  }

  async #said(argv: readonly [string, ...string[]], options: CallOptions): Promise<string | undefined> {
    const said = await this.#parts.commands?.run({ argv, timeoutMs: COMMAND_MS }, options).catch(() => undefined);
    return said?.exitCode === 0 ? said.stdout : undefined;
  }

  async #sources(): Promise<readonly Source[] | undefined> {
    const { files } = this.#parts;
    if (!(await files.has('/etc/apt'))) return undefined;
    const names = (await files.names(SOURCE_FOLDER)) ?? [];
    const paths = [SOURCES, ...names.toSorted().map((name) => `${SOURCE_FOLDER}/${name}`)];
    const all = paths.map(async (path) => {
      const text = (await files.text(path)) ?? '';
      if (path.endsWith('.list')) return readSourceLines(path, text);
      return path.endsWith('.sources') ? readSourceParagraphs(path, text) : [];
    });
    return (await Promise.all(all)).flat();
  }
}
