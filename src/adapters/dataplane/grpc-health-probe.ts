import { credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { formatAddressPort, type IpAddress, isIpv6, type PortNumber } from '../../domain/kernel/network.js';
import { HealthClient, HealthCheckResponse_ServingStatus as Serving } from '../generated/grpc/health/v1/health.js';

/** A connection of its own each time, without the back-off that clients share. */
const channel = {
  'grpc.use_local_subchannel_pool': 1,
  'grpc.enable_http_proxy': 0,
  'grpc.enable_retries': 0,
  'grpc.max_receive_message_length': 64 * 1024,
};

/** Resolves with what speaks against the answer; rejects on abort. */
export async function probeGrpc(host: IpAddress, port: PortNumber, service: string, signal: AbortSignal): Promise<string> {
  const scheme = isIpv6(host) ? 'ipv6' : 'ipv4';
  const client = new HealthClient(`${scheme}:${formatAddressPort(host, port)}`, credentials.createInsecure(), channel);
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const call = client.check({ service }, new Metadata(), {}, (error, response) => {
    resolve(error === null ? judge(response.status) : refusal(error));
  });
  const onAbort = () => {
    call.cancel();
    reject(signal.reason);
  };
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await promise;
  } finally {
    signal.removeEventListener('abort', onAbort);
    client.close();
  }
}

function judge(serving: Serving): string {
  return serving === Serving.SERVING ? '' : `it says ${Serving[serving] ?? 'what it should not'}`;
}

function refusal({ code }: ServiceError): string {
  switch (code) {
    case status.UNAVAILABLE:
      return 'no gRPC server answers';
    case status.UNIMPLEMENTED:
      return 'it has no gRPC health service';
    case status.NOT_FOUND:
      return 'it does not know the service';
    default:
      return `gRPC status ${status[code]}`;
  }
}
