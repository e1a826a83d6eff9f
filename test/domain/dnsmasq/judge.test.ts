import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { allowedDirectives, forbiddenNames } from '../../../src/domain/dnsmasq/directives.js';
import { judgeContents } from '../../../src/domain/dnsmasq/judge.js';

test('what a control plane sends in practice is allowed', () => {
  const contents = `# names of this fleet
no-resolv
bind-dynamic
\tlisten-address=127.0.0.1,10.9.0.1   # and the overlay
interface = lo
server=1.1.1.1
server=/cluster.local/10.96.0.10#53
server=2606:4700::1111#53@eth0
address=/api.fleet.example/10.9.0.1
address=/#/
local=/fleet.example/
domain=fleet.example,10.9.0.0/24,local
expand-hosts
cache-size=1000
log-queries
log-queries=extra
port=53

`;
  expect(judgeContents(contents)).toEqual([]);
});

test('every allowed directive is, with the value that it takes', () => {
  for (const [name, value] of allowedDirectives) {
    const lines = { none: [name], some: [`${name}=1`, `${name} = 1`, ` ${name}\t=\t1 `], maybe: [name, `${name}=1`] }[value];
    expect(lines.flatMap((line) => judgeContents(line))).toEqual([]);
  }
});

test.each([
  ['no-resolv=1', 'line 1: no-resolv takes no value'],
  ['port', 'line 1: port needs a value'],
  ['port=', 'line 1: port needs a value'],
  ['\n\nport=5353=conf-file', 'line 3: port has "=" in its value'],
  ['server=1.1.1.1 \\', 'line 1: server has "\\\\" in its value'],
  ['address="/x/1.1.1.1"', 'line 1: address has "\\"" in its value'],
  ['address=/ä/1.1.1.1', 'line 1: address has "ä" in its value'],
  ['domain=#', 'line 1: domain=# is refused: it reads another file'],
  ['conf-file=/etc/shadow', 'line 1: conf-file is refused: it reads another file'],
  ['--conf-file=/etc/shadow', 'line 1: conf-file is refused: it reads another file'],
  ['dhcp-script=/bin/sh', 'line 1: dhcp-script is refused: it runs a program'],
  ['user=root', 'line 1: user is refused: it changes the user'],
  ['cname=a,b', 'line 1: cname is refused: it is none of those that a control plane may set'],
  ['CONF-FILE=/x', 'line 1: no directive that is allowed, though like conf-file: written as a lone name, or as name=value'],
  ['= /x', 'line 1: no directive'],
  ['no-resolv\r', 'line 1: a control character, number 13'],
  ['# \0', 'line 1: a control character, number 0'],
  ['# \ud800', 'line 1: text that is no Unicode'],
  [`#${'x'.repeat(1_000)}`, 'line 1: longer than 1000 bytes'],
  [`#${'ä'.repeat(500)}`, 'line 1: longer than 1000 bytes'],
])('%j: %s', (contents, problem) => {
  expect(judgeContents(contents)).toEqual([problem]);
});

test('a line of just the greatest length is one', () => {
  expect(judgeContents(`#${'x'.repeat(999)}\n#${'ä'.repeat(499)}x\n#${'\u{1f600}'.repeat(249)}xxx`)).toEqual([]);
});

test('a few places are told, and no more', () => {
  expect(judgeContents('a\nb\nc\nd\n').map((problem) => problem.slice(0, 6))).toEqual(['line 1', 'line 2', 'line 3']);
});

/** Ways to write a directive that dnsmasq takes for it, that some version might, or that hide it behind something harmless. */
const spellings: Readonly<Record<string, (name: string) => string>> = {
  plain: (name) => `${name}=/x`,
  'without a value': (name) => name,
  'with an empty value': (name) => `${name}=`,
  'blanks about the sign': (name) => `${name} = /x`,
  'a blank before the sign': (name) => `${name} =/x`,
  'tabs about the sign': (name) => `${name}\t=\t/x`,
  'leading blanks': (name) => `   ${name}=/x`,
  'a leading tab': (name) => `\t${name}=/x`,
  'two signs': (name) => `${name}==/x`,
  'a blank for the sign': (name) => `${name} /x`,
  'as an option': (name) => `--${name}=/x`,
  'as an option with a blank': (name) => `--${name} /x`,
  'as a short option': (name) => `-${name}=/x`,
  'after a lone option end': (name) => `-- ${name}=/x`,
  'a comment behind it': (name) => `${name}=/x # harmless`,
  'a hash in it': (name) => `${name}#=/x`,
  'in quotes': (name) => `"${name}=/x"`,
  'its name in quotes': (name) => `"${name}"=/x`,
  'a part of its name in quotes': (name) => `${name.slice(0, 2)}"${name.slice(2)}"=/x`,
  'empty quotes before it': (name) => `""${name}=/x`,
  'its sign in quotes': (name) => `${name}"="/x`,
  capitals: (name) => `${name.toUpperCase()}=/x`,
  'a line end of another system': (name) => `${name}=/x\r\n`,
  'a lone carriage return before it': (name) => `no-resolv\r${name}=/x`,
  'a form feed before it': (name) => `\f${name}=/x`,
  'a vertical tab before it': (name) => `\v${name}=/x`,
  'NUL before it': (name) => `\0${name}=/x`,
  'NUL in the line before it': (name) => `no-resolv\0\n${name}=/x`,
  'a mark of byte order before it': (name) => `\ufeff${name}=/x`,
  'a wide blank before it': (name) => `\u00a0${name}=/x`,
  'a line separator before it': (name) => `no-resolv\u2028${name}=/x`,
  'behind a long comment': (name) => `#${'x'.repeat(1_023)}${name}=/x`,
  'behind a long value': (name) => `address=/${'x'.repeat(1_014)}${name}=/x`,
  'behind many blanks': (name) => `${' '.repeat(1_024)}${name}=/x`,
  'behind a continued line': (name) => `no-resolv \\\n${name}=/x`,
  'behind a continued comment': (name) => `# harmless \\\n${name}=/x`,
  'behind another directive': (name) => `no-resolv;${name}=/x`,
  'as the value of one without': (name) => `no-resolv=${name}=/x`,
  'behind a value': (name) => `cache-size=150 ${name}=/x`,
  'after a line without fault': (name) => `no-resolv\n${name}=/x`,
};

describe('every forbidden directive is refused in every spelling', () => {
  test('of which there are more than 30, for more than 25 directives', () => {
    expect(Object.keys(spellings).length).toBeGreaterThanOrEqual(30);
    expect(forbiddenNames.length).toBeGreaterThanOrEqual(25);
  });

  test.each(Object.entries(spellings))('%s', (_, spell) => {
    for (const name of forbiddenNames) expect([name, judgeContents(spell(name))]).not.toEqual([name, []]);
  });
});

test('law: what is allowed stays so among other lines that are, and what is refused among any', () => {
  const allowed = fc.constantFrom('no-resolv', 'server=1.1.1.1', '# c', '', 'address=/a.example/10.0.0.1 # c');
  const refused = fc.tuple(fc.constantFrom(...Object.values(spellings)), fc.constantFrom(...forbiddenNames));
  fc.assert(
    fc.property(fc.array(allowed), refused, fc.array(allowed), (before, [spell, name], after) => {
      expect(judgeContents([...before, ...after].join('\n'))).toEqual([]);
      expect(judgeContents([...before, spell(name), ...after].join('\n'))).not.toEqual([]);
    }),
  );
});

test('law: whatever the text, each problem names its line', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      for (const problem of judgeContents(text)) expect(problem).toMatch(/^line \d+: /);
    }),
  );
});
