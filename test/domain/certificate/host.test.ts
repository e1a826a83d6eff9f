import { describe, expect, test } from 'vitest';
import { hostCidrs, osName } from '../../../src/domain/certificate/host.js';

const on = (device: string, cidr: string) => {
  const [address = '', prefix] = cidr.split('/');
  return { device, address, prefixLength: Number(prefix) };
};

describe('the networks of the host', () => {
  test('of addresses and routes, each once, in order', () => {
    const networks = [
      on('eth1', '192.168.7.9/24'),
      on('eth0', '10.1.2.3/16'),
      on('eth0', '10.1.0.0/16'),
      on('eth0', '10.1.0.0/24'),
      on('eth0', '9.0.0.0/8'),
    ];
    expect(hostCidrs(networks)).toEqual(['9.0.0.0/8', '10.1.0.0/16', '10.1.0.0/24', '192.168.7.0/24']);
  });

  test.each(['lo', 'wg0', 'wg-mesh', 'cilium_host', 'cilium_net', 'lxc12ab', 'lxc_health', 'cni0', 'kube-ipvs0'])(
    'without our own %s, with which a second registration would collide',
    (device) => {
      expect(hostCidrs([on(device, '10.1.2.3/16')])).toEqual([]);
    },
  );

  test.each(['eth0', 'enp3s0', 'docker0', 'bond0', 'br-lan', 'wlan0', 'tailscale0'])('with those of %s', (device) => {
    expect(hostCidrs([on(device, '10.1.2.3/16')])).toEqual(['10.1.0.0/16']);
  });

  test('without the default route, and what is no IPv4', () => {
    expect(
      hostCidrs([on('eth0', '0.0.0.0/0'), on('eth0', 'fe80::1/64'), on('eth0', '10.0.0.1/33'), on('eth0', '10.0.0.1/x')]),
    ).toEqual([]);
  });

  test('a single address is a network', () => {
    expect(hostCidrs([on('eth0', '203.0.113.7/32')])).toEqual(['203.0.113.7/32']);
  });
});

describe('the name of the system', () => {
  test.each([
    ['debian-12', 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nNAME="Debian GNU/Linux"\nVERSION_ID="12"\nID=debian\n'],
    ['ubuntu-24.04', "ID=ubuntu\nID_LIKE=debian\nVERSION_ID='24.04'\n"],
    ['arch', 'NAME="Arch Linux"\nID=arch\nBUILD_ID=rolling\n'],
    ['', 'NAME=x\nVERSION_ID=1\n'],
    ['', ''],
    ['a"b-1', 'ID="a\\"b"\nVERSION_ID=1'],
    ['rhel-9.4', '# ID=fedora\n  ID="rhel"  \nVERSION_ID="9.4"\r\n'],
  ])('%s', (name, text) => {
    expect(osName(text)).toBe(name);
  });
});
