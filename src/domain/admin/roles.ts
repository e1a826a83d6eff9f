import type { AdminGrade } from '../certificate/model.js';
import { adminGrades } from '../certificate/names.js';
import { kindOf } from '../instruction/catalogue.js';
import { AgentError } from '../kernel/errors.js';

/**
 * The least role for each method of the admin API (engine.md G1). viewer: reads, without Secret values and result payloads. operator:
 * changes resources, holds nodes back, and sends what only reads or converges. admin: everything, such as who may be a node or an admin.
 */
export const leastGrades: Readonly<Record<string, AdminGrade>> = {
  '/holdfast.admin.v1.AdminService/Apply': 'operator',
  '/holdfast.admin.v1.AdminService/Delete': 'operator',
  '/holdfast.admin.v1.AdminService/Get': 'viewer',
  '/holdfast.admin.v1.AdminService/Watch': 'viewer',
  '/holdfast.admin.v1.AdminService/Status': 'viewer',
  '/holdfast.admin.v1.AdminService/Events': 'viewer',
  '/holdfast.admin.v1.AdminService/Top': 'viewer',
  '/holdfast.admin.v1.AdminService/Explain': 'viewer',
  // Of which kinds, and of whose, `mayInstruct` says.
  '/holdfast.admin.v1.FleetService/OpenSession': 'admin',
  '/holdfast.admin.v1.FleetService/Send': 'operator',
  '/holdfast.admin.v1.FleetService/CancelInstruction': 'operator',
  '/holdfast.admin.v1.FleetService/ListInstructions': 'viewer',
  '/holdfast.admin.v1.FleetService/GetInstruction': 'viewer',
  '/holdfast.admin.v1.FleetService/WatchInstructions': 'viewer',
  '/holdfast.admin.v1.FleetService/ListNodes': 'viewer',
  '/holdfast.admin.v1.FleetService/CordonNode': 'operator',
  '/holdfast.admin.v1.FleetService/RemoveNode': 'admin',
  '/holdfast.admin.v1.FleetService/RevokeCertificate': 'admin',
  '/holdfast.admin.v1.FleetService/CreateToken': 'admin',
  '/holdfast.admin.v1.FleetService/ListTokens': 'viewer',
  '/holdfast.admin.v1.FleetService/RevokeToken': 'admin',
  '/holdfast.admin.v1.FleetService/Backup': 'admin',
  '/holdfast.admin.v1.FleetService/ListVips': 'viewer',
  '/holdfast.admin.v1.FleetService/MoveVip': 'admin',
  '/holdfast.admin.v1.CertificateService/CreateAdminCertificate': 'admin',
  '/holdfast.admin.v1.CertificateService/ListAdminCertificates': 'viewer',
  '/holdfast.admin.v1.NodeService/Resync': 'admin',
  '/holdfast.admin.v1.NodeService/ListJournal': 'viewer',
  '/holdfast.admin.v1.NodeService/SyncOverlay': 'operator',
  '/holdfast.admin.v1.NodeService/ListEtcdMembers': 'viewer',
  '/holdfast.admin.v1.NodeService/RemoveEtcdMember': 'admin',
  '/holdfast.admin.v1.NodeService/AddEtcdMember': 'admin',
  '/holdfast.admin.v1.NodeService/PromoteEtcdMember': 'admin',
  '/holdfast.admin.v1.NodeService/GetApiBalancer': 'viewer',
  '/holdfast.admin.v1.NodeService/RefreshApiBalancer': 'operator',
};

/** Undefined for a method that the table does not have: nobody may call it. */
export function leastGrade(method: string): AdminGrade | undefined {
  return Object.hasOwn(leastGrades, method) ? leastGrades[method] : undefined;
}

export function suffices(grade: AdminGrade, least: AdminGrade): boolean {
  return adminGrades.indexOf(grade) >= adminGrades.indexOf(least);
}

/**
 * Whether somebody of this role may send, or cancel, instructions of this type: an operator those that only read or converge, whatever
 * their payload says, as a script that calls itself repeatable is still any script.
 */
export function mayInstruct(grade: AdminGrade, type: string): boolean {
  const repeat = kindOf(type)?.scheduling.repeat;
  return suffices(grade, repeat === 'read' || repeat === 'repeat' ? 'operator' : 'admin');
}

/** Nobody calls what has no role: a server that has it does not start. @throws AgentError `admin.not_served` */
export function checkRoles(methods: readonly string[]): void {
  const missing = methods.filter((method) => leastGrade(method) === undefined);
  if (missing.length > 0) throw new AgentError('admin.not_served', { problem: `no role is set for ${missing.join(', ')}` });
}
