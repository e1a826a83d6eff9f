import type { NftOperation } from '../../src/adapters/dataplane/nft-addon.js';
import type { RuleExpression } from '../../src/domain/dataplane/ruleset.js';

const table = 'holdfast-cut';
/** Of the connection mark: the flow ends. */
export const cutBit = 0x4000_0000;
/** Of packets (SO_MARK) that are not tracked. */
export const untrackedMark = 0x0f11_d001;

const prerouting = 0;
const output = 3;
const related = 4;
const tcp = 6;

/** As the registers have it: in the byte order of the machine. */
const u32 = (value: number) => new Uint8Array(Uint32Array.of(value).buffer);
const verdict = (code: number, chain = ''): RuleExpression => ['verdict', 0, code, chain];
const jump = (chain: string) => verdict(0xffff_fffd, chain);
const goto = (chain: string) => verdict(0xffff_fffc, chain);
const accept = verdict(1);
const drop = verdict(0);
const isTcp: readonly RuleExpression[] = [
  ['meta-load', 16, 8],
  ['cmp', 8, 0, Uint8Array.of(tcp)],
];

function rule(chain: string, ...expressions: readonly RuleExpression[]): NftOperation {
  return { kind: 'rule', table, chain, expressions };
}

/** What ends a marked flow: whatever comes of it is answered by a reset, but our own resets pass. */
function cutChain(): readonly NftOperation[] {
  return [
    { kind: 'chain', table, chain: 'cut' },
    { kind: 'chain', table, chain: 'cutcheck' },
    rule('cut', ['ct-load', 0, 8], ['bitwise', 8, 8, 4, u32(related), u32(0)], ['cmp', 8, 1, u32(0)], accept),
    rule(
      'cut',
      ...isTcp,
      ['payload', 8, 2, 13, 1],
      ['bitwise', 8, 8, 1, Uint8Array.of(4), Uint8Array.of(0)],
      ['cmp', 8, 1, Uint8Array.of(0)],
      accept,
    ),
    rule('cut', ...isTcp, ['counter'], ['reject', 1, 0]),
    rule('cut', ['counter'], drop),
    rule('cutcheck', ['ct-load', 3, 8], ['bitwise', 8, 8, 4, u32(cutBit), u32(0)], ['cmp', 8, 1, u32(0)], goto('cut')),
  ];
}

interface Service {
  readonly vip: readonly number[];
  readonly port: number;
  readonly backend: readonly number[];
  readonly backendPort: number;
}

/** One service by destination NAT, of either family. */
function service({ vip, port, backend, backendPort }: Service): readonly NftOperation[] {
  const v4 = vip.length === 4;
  const set = v4 ? 'ep4' : 'ep6';
  const words = vip.length / 4;
  const ends = (address: readonly number[], number: number) => [...address, number >> 8, number & 255, 0, 0];
  const [proto, dport] = [8 + words, 9 + words];
  const key = [...vip, tcp, 0, 0, 0, port >> 8, port & 255, 0, 0];
  const data = ends(backend, backendPort);
  return [
    { kind: 'set', table, set, flags: 8, keyType: 0, fields: [vip.length, 1, 2], dataType: 1, dataBytes: data.length },
    {
      kind: 'add-elements',
      table,
      set,
      keyBytes: key.length,
      dataBytes: data.length,
      packed: Uint8Array.from([...key, ...data]),
    },
    rule(
      'nat',
      ['meta-load', 15, 1],
      ['cmp', 1, 0, Uint8Array.of(v4 ? 2 : 10)],
      ['payload', 8, 1, v4 ? 16 : 24, vip.length],
      ['meta-load', 16, proto],
      ['payload', dport, 2, 2, 2],
      ['lookup', set, 8, 8],
      ['nat', 1, v4 ? 2 : 10, 8, 8 + words],
    ),
  ];
}

/** The part of the ruleset that ends flows, with services to have some. */
export function cutRuleset(services: readonly Service[]): readonly NftOperation[] {
  const hooked = (chain: string, type: string, hook: number, priority: number, ...expressions: readonly RuleExpression[]) => [
    { kind: 'chain', table, chain, type, hook, priority } as const,
    rule(chain, ...expressions),
  ];
  return [
    { kind: 'table', table },
    ...hooked('rawout', 'filter', output, -300, ['meta-load', 3, 8], ['cmp', 8, 0, u32(untrackedMark)], ['notrack']),
    ...cutChain(),
    ...hooked('cutpre', 'filter', prerouting, -150, jump('cutcheck')),
    ...hooked('cutout', 'filter', output, -150, jump('cutcheck')),
    { kind: 'chain', table, chain: 'nat', type: 'nat', hook: prerouting, priority: -110 },
    ...services.flatMap(service),
  ];
}
