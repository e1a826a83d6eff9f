import type { ClientReadableStream } from '@grpc/grpc-js';
import type { CallOptions } from '../../ports/call-options.js';
import { type Send, unary } from '../certificate/unary-call.js';
import * as wire from '../generated/holdfast/admin/v1/admin.js';
import * as certificatesWire from '../generated/holdfast/admin/v1/certificates.js';
import * as fleetWire from '../generated/holdfast/admin/v1/fleet.js';
import * as nodeWire from '../generated/holdfast/admin/v1/node.js';
import { isServiceError } from '../grpc/grpc-errors.js';
import { type AdminSession, adminSession } from './admin-session.js';
import { type AdminWay, localWay, type RemoteTarget, remoteWay } from './admin-way.js';

/** Ten thousand objects with their status are about 15 MB. */
const MAX_RESPONSE_BYTES = 256 * 1024 * 1024;
/** The slowest call is the apply of a whole file; no answer after this is a daemon that hangs. */
const CALL_MS = 120_000;

/** Unless it says how new the answer has to be, it is the newest. */
type Read<Request> = Omit<Request, keyof typeof newest> & Partial<typeof newest>;
const newest = { stale: false, atLeast: 0n };

/** One daemon's admin API, as its callers use it. Every failure is an AgentError; on abort calls reject with the signal's reason. */
export class GrpcAdminClient {
  readonly #client: InstanceType<typeof wire.AdminServiceClient>;
  readonly #fleet: InstanceType<typeof fleetWire.FleetServiceClient>;
  readonly #certificates: InstanceType<typeof certificatesWire.CertificateServiceClient>;
  readonly #node: InstanceType<typeof nodeWire.NodeServiceClient>;
  readonly #way: AdminWay;

  /**
   * @param target path of a socket, or a server elsewhere
   * @throws AgentError `admin.unreachable` when the socket's path is too long for the kernel and its folder is not there,
   * `certificate.unusable`
   */
  constructor(target: string | RemoteTarget) {
    const way = typeof target === 'string' ? localWay(target) : remoteWay(target);
    const channel = {
      'grpc.max_receive_message_length': MAX_RESPONSE_BYTES,
      'grpc.enable_http_proxy': 0,
      'grpc.enable_retries': 0,
      ...way.options,
    };
    this.#way = way;
    // All use one connection: grpc-js shares it between channels of the same target and options.
    this.#client = new wire.AdminServiceClient(way.address, way.credentials, channel);
    this.#fleet = new fleetWire.FleetServiceClient(way.address, way.credentials, channel);
    this.#certificates = new certificatesWire.CertificateServiceClient(way.address, way.credentials, channel);
    this.#node = new nodeWire.NodeServiceClient(way.address, way.credentials, channel);
  }

  apply(request: wire.ApplyRequest, options: CallOptions): Promise<wire.ApplyResponse> {
    return this.#unary(this.#client.apply.bind(this.#client), request, options);
  }

  delete(request: wire.DeleteRequest, options: CallOptions): Promise<wire.DeleteResponse> {
    return this.#unary(this.#client.delete.bind(this.#client), request, options);
  }

  get(request: Read<wire.GetRequest>, options: CallOptions): Promise<wire.GetResponse> {
    return this.#unary(this.#client.get.bind(this.#client), { ...newest, ...request }, options);
  }

  status(options: CallOptions): Promise<wire.StatusResponse> {
    return this.#unary(this.#client.status.bind(this.#client), {}, options);
  }

  top(request: wire.TopRequest, options: CallOptions): Promise<wire.TopResponse> {
    return this.#unary(this.#client.top.bind(this.#client), request, options);
  }

  explain(request: wire.ExplainRequest, options: CallOptions): Promise<wire.ExplainResponse> {
    return this.#unary(this.#client.explain.bind(this.#client), request, options);
  }

  /** Ends without an error on abort. */
  watch(request: Read<wire.WatchRequest>, options: CallOptions): AsyncIterable<wire.WatchResponse> {
    return this.#stream(() => this.#client.watch({ ...newest, ...request }), options);
  }

  /** Ends without an error on abort. */
  events(request: wire.EventsRequest, options: CallOptions): AsyncIterable<wire.EventsResponse> {
    return this.#stream(() => this.#client.events(request), options);
  }

  send(request: fleetWire.SendRequest, options: CallOptions): Promise<fleetWire.SendResponse> {
    return this.#unary(this.#fleet.send.bind(this.#fleet), request, options);
  }

  listInstructions(
    request: fleetWire.ListInstructionsRequest,
    options: CallOptions,
  ): Promise<fleetWire.ListInstructionsResponse> {
    return this.#unary(this.#fleet.listInstructions.bind(this.#fleet), request, options);
  }

  getInstruction(request: fleetWire.GetInstructionRequest, options: CallOptions): Promise<fleetWire.GetInstructionResponse> {
    return this.#unary(this.#fleet.getInstruction.bind(this.#fleet), request, options);
  }

  /** Ends without an error on abort. */
  watchInstructions(
    request: fleetWire.WatchInstructionsRequest,
    options: CallOptions,
  ): AsyncIterable<fleetWire.WatchInstructionsResponse> {
    return this.#stream(() => this.#fleet.watchInstructions(request), options);
  }

  cancelInstruction(
    request: fleetWire.CancelInstructionRequest,
    options: CallOptions,
  ): Promise<fleetWire.CancelInstructionResponse> {
    return this.#unary(this.#fleet.cancelInstruction.bind(this.#fleet), request, options);
  }

  listNodes(options: CallOptions): Promise<fleetWire.ListNodesResponse> {
    return this.#unary(this.#fleet.listNodes.bind(this.#fleet), {}, options);
  }

  cordonNode(request: fleetWire.CordonNodeRequest, options: CallOptions): Promise<fleetWire.CordonNodeResponse> {
    return this.#unary(this.#fleet.cordonNode.bind(this.#fleet), request, options);
  }

  removeNode(request: fleetWire.RemoveNodeRequest, options: CallOptions): Promise<fleetWire.RemoveNodeResponse> {
    return this.#unary(this.#fleet.removeNode.bind(this.#fleet), request, options);
  }

  revokeCertificate(
    request: fleetWire.RevokeCertificateRequest,
    options: CallOptions,
  ): Promise<fleetWire.RevokeCertificateResponse> {
    return this.#unary(this.#fleet.revokeCertificate.bind(this.#fleet), request, options);
  }

  /** In order; ends without an error on abort. */
  backup(request: fleetWire.BackupRequest, options: CallOptions): AsyncIterable<fleetWire.BackupResponse> {
    return this.#stream(() => this.#fleet.backup(request), options);
  }

  /** Until it ends or is aborted. */
  openSession(options: CallOptions): AdminSession {
    return adminSession(this.#fleet.openSession(), this.#way, options);
  }

  createToken(request: fleetWire.CreateTokenRequest, options: CallOptions): Promise<fleetWire.CreateTokenResponse> {
    return this.#unary(this.#fleet.createToken.bind(this.#fleet), request, options);
  }

  listTokens(options: CallOptions): Promise<fleetWire.ListTokensResponse> {
    return this.#unary(this.#fleet.listTokens.bind(this.#fleet), {}, options);
  }

  revokeToken(request: fleetWire.RevokeTokenRequest, options: CallOptions): Promise<fleetWire.RevokeTokenResponse> {
    return this.#unary(this.#fleet.revokeToken.bind(this.#fleet), request, options);
  }

  listVips(options: CallOptions): Promise<fleetWire.ListVipsResponse> {
    return this.#unary(this.#fleet.listVips.bind(this.#fleet), {}, options);
  }

  moveVip(request: fleetWire.MoveVipRequest, options: CallOptions): Promise<fleetWire.MoveVipResponse> {
    return this.#unary(this.#fleet.moveVip.bind(this.#fleet), request, options);
  }

  createAdminCertificate(
    request: certificatesWire.CreateAdminCertificateRequest,
    options: CallOptions,
  ): Promise<certificatesWire.CreateAdminCertificateResponse> {
    return this.#unary(this.#certificates.createAdminCertificate.bind(this.#certificates), request, options);
  }

  listAdminCertificates(options: CallOptions): Promise<certificatesWire.ListAdminCertificatesResponse> {
    return this.#unary(this.#certificates.listAdminCertificates.bind(this.#certificates), {}, options);
  }

  resync(request: nodeWire.ResyncRequest, options: CallOptions): Promise<nodeWire.ResyncResponse> {
    return this.#unary(this.#node.resync.bind(this.#node), request, options);
  }

  listJournal(options: CallOptions): Promise<nodeWire.ListJournalResponse> {
    return this.#unary(this.#node.listJournal.bind(this.#node), {}, options);
  }

  syncOverlay(options: CallOptions): Promise<nodeWire.SyncOverlayResponse> {
    return this.#unary(this.#node.syncOverlay.bind(this.#node), {}, options);
  }

  listEtcdMembers(options: CallOptions): Promise<nodeWire.ListEtcdMembersResponse> {
    return this.#unary(this.#node.listEtcdMembers.bind(this.#node), {}, options);
  }

  removeEtcdMember(request: nodeWire.RemoveEtcdMemberRequest, options: CallOptions): Promise<nodeWire.RemoveEtcdMemberResponse> {
    return this.#unary(this.#node.removeEtcdMember.bind(this.#node), request, options);
  }

  addEtcdMember(request: nodeWire.AddEtcdMemberRequest, options: CallOptions): Promise<nodeWire.AddEtcdMemberResponse> {
    return this.#unary(this.#node.addEtcdMember.bind(this.#node), request, options);
  }

  promoteEtcdMember(
    request: nodeWire.PromoteEtcdMemberRequest,
    options: CallOptions,
  ): Promise<nodeWire.PromoteEtcdMemberResponse> {
    return this.#unary(this.#node.promoteEtcdMember.bind(this.#node), request, options);
  }

  getApiBalancer(options: CallOptions): Promise<nodeWire.GetApiBalancerResponse> {
    return this.#unary(this.#node.getApiBalancer.bind(this.#node), {}, options);
  }

  refreshApiBalancer(options: CallOptions): Promise<nodeWire.RefreshApiBalancerResponse> {
    return this.#unary(this.#node.refreshApiBalancer.bind(this.#node), {}, options);
  }

  close(): void {
    this.#client.close();
    this.#fleet.close();
    this.#certificates.close();
    this.#node.close();
    this.#way.release();
  }

  async #unary<Request, Response>(send: Send<Request, Response>, request: Request, options: CallOptions): Promise<Response> {
    const answer = await unary(send, request, CALL_MS, options);
    if ('response' in answer) return answer.response;
    throw await this.#way.failure(answer.error, options);
  }

  async *#stream<Response>(open: () => ClientReadableStream<Response>, options: CallOptions): AsyncIterable<Response> {
    const { signal } = options;
    if (signal.aborted) return;
    const call = open();
    const onAbort = () => call.cancel();
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      yield* call;
    } catch (error) {
      if (signal.aborted) return;
      throw isServiceError(error) ? await this.#way.failure(error, options) : error;
    } finally {
      signal.removeEventListener('abort', onAbort);
      call.cancel();
    }
  }
}
