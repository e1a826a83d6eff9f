import { z } from 'zod';
import { type IpAddress, ipAddress } from '../../kernel/network.js';
import { built } from './kind.js';

export const removeEtcdMember = built({
  type: 'REMOVE_ETCD_MEMBER',
  schema: z.object({
    node_ip: z
      .string('text')
      .refine((text) => ipAddress(text) !== undefined, 'an IPv4 or IPv6 address')
      .transform((text) => (ipAddress(text) ?? text) as IpAddress),
  }),
  scheduling: { lanes: ['etcd'], slot: 'work', deadlineMs: 120_000, repeat: 'probe' },
  work: ({ node_ip: address }) => ({ plan: { do: 'remove_etcd_member', address } }),
});
