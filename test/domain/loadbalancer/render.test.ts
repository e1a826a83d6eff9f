import { hash } from 'node:crypto';
import { expect, test } from 'vitest';
import { nameServers } from '../../../src/domain/loadbalancer/names.js';
import { MARK, mayReplace, renderConfig } from '../../../src/domain/loadbalancer/render.js';
import { endpoint } from '../../support/endpoint.js';

const sha256 = (text: string) => hash('sha256', text, 'hex');
const settings = { port: 6_446, socket: '/run/haproxy/admin.sock', hasIpv6: true, requestSeconds: 60 };
const render = (list: readonly string[], given = settings) =>
  renderConfig(nameServers(list.map(endpoint), [], []), given, sha256);

test('the whole file', () => {
  expect(render(['10.0.0.1:6443', '[fd00::2]:7443']).text).toBe(`${MARK}
global
    description holdfast ${render([]).description.slice('holdfast '.length)}
    stats socket /run/haproxy/admin.sock mode 600 level admin expose-fd listeners
    chroot /var/lib/haproxy
    user haproxy
    group haproxy
    # A worker that was replaced keeps its streams for an hour, and over the next reload: while it ends, there are two of them.
    hard-stop-after 1h
    mworker-max-reloads 1

defaults
    mode tcp
    retries 3
    option redispatch 1
    timeout connect 3s
    timeout check 3s
    timeout queue 5s
    timeout client 60s
    timeout server 60s
    timeout client-fin 30s
    timeout server-fin 30s
    # Watches, logs and shells: the API server and the kubelet end them sooner, and a dead peer is noticed by the probes below.
    timeout tunnel 24h
    option clitcpka
    clitcpka-idle 60s
    clitcpka-intvl 10s
    clitcpka-cnt 6
    option srvtcpka
    srvtcpka-idle 60s
    srvtcpka-intvl 10s
    srvtcpka-cnt 6

frontend k8s_api
    bind :::6446 v4v6
    # A tunnel begins with the client's first byte, as of TLS; before it, the time-out of requests is in force.
    tcp-request inspect-delay 60s
    tcp-request content accept if { req.len gt 0 }
    tcp-request content reject
    default_backend k8s_api_backend

backend k8s_api_backend
    balance leastconn
    server api-1 10.0.0.1:6443 check inter 2s fall 3 rise 2 on-marked-down shutdown-sessions
    server api-2 [fd00::2]:7443 check inter 2s fall 3 rise 2 on-marked-down shutdown-sessions
`);
});

test('a name is looked up again and again, and one that is not found keeps nothing from starting', () => {
  const { text } = render(['cp.example']);
  expect(text).toContain('\nresolvers node\n    parse-resolv-conf\n');
  expect(text).toContain('    server api-1 cp.example:6443 check');
  expect(text).toContain(' resolvers node init-addr last,libc,none\n');
});

test('a kernel without IPv6 is not asked for it', () => {
  expect(render(['10.0.0.1'], { ...settings, hasIpv6: false }).text).toContain('    bind *:6446\n');
});

test('the description is another one for whatever but the addresses is another', () => {
  const { description } = render(['10.0.0.1']);
  expect(description).toMatch(/^holdfast [0-9a-f]{16}$/);
  expect(render(['10.0.0.2', '10.0.0.3']).description).toBe(description);
  expect(render(['cp.example']).description).not.toBe(description);
  expect(render(['10.0.0.1'], { ...settings, requestSeconds: 61 }).description).not.toBe(description);
});

const debian = 'global\n\tlog /dev/log\tlocal0\n\tuser haproxy\ndefaults\n\tmode\thttp\n\ttimeout connect 5000\n';
test.each([
  ['our own', `${MARK}\nfrontend other\n`, true],
  ["Debian's", debian, true],
  ['none at all', '', true],
  ['an older agent’s', `${debian}frontend k8s_api\n  bind *:6446\nbackend k8s_api_backend\n  server api-0 10.0.0.1:6443\n`, true],
  ['one with a comment of it', `# frontend x\n${debian}`, true],
  ['a web server’s', `${debian}frontend www\n  bind *:80\n`, false],
  ['one that listens', `${debian}  listen stats\n  bind *:8404\n`, false],
  ['one with ours and more', `frontend k8s_api\nbackend k8s_api_backend\nbackend other\n`, false],
  ['a name that begins like ours', 'frontend k8s_api2\n', false],
])('%s file may be replaced or not', (_, text, may) => {
  expect(mayReplace(text, false)).toBe(may);
  expect(mayReplace(text, true)).toBe(true);
});
