import { describe, expect, test } from 'vitest';
import { checkRoles, leastGrade, leastGrades, mayInstruct, suffices } from '../../../src/domain/admin/roles.js';
import { adminGrades } from '../../../src/domain/certificate/names.js';
import { catalogue } from '../../../src/domain/instruction/catalogue.js';

const methodsOf = (grade: string) =>
  Object.entries(leastGrades).flatMap(([path, least]) => (least === grade ? [path.replace(/^.*\./, '')] : []));

describe('G1: who may call what', () => {
  test('a viewer reads', () => {
    expect(methodsOf('viewer').toSorted()).toEqual([
      'AdminService/Events',
      'AdminService/Explain',
      'AdminService/Get',
      'AdminService/Status',
      'AdminService/Top',
      'AdminService/Watch',
      'CertificateService/ListAdminCertificates',
      'FleetService/GetInstruction',
      'FleetService/ListInstructions',
      'FleetService/ListNodes',
      'FleetService/ListTokens',
      'FleetService/ListVips',
      'FleetService/WatchInstructions',
      'NodeService/GetApiBalancer',
      'NodeService/ListEtcdMembers',
      'NodeService/ListJournal',
    ]);
  });

  test('an operator changes what can be changed back', () => {
    expect(methodsOf('operator').toSorted()).toEqual([
      'AdminService/Apply',
      'AdminService/Delete',
      'FleetService/CancelInstruction',
      'FleetService/CordonNode',
      'FleetService/Send',
      'NodeService/RefreshApiBalancer',
      'NodeService/SyncOverlay',
    ]);
  });

  test('each role may what those before it may', () => {
    const table = adminGrades.map((grade) => adminGrades.map((least) => suffices(grade, least)));
    expect(table).toEqual([
      [true, false, false],
      [true, true, false],
      [true, true, true],
    ]);
  });

  test.each(['', 'toString', '/holdfast.admin.v1.FleetService/send', '/holdfast.admin.v1.FleetService/Send/'])(
    'nobody may call %j',
    (method) => {
      expect(leastGrade(method)).toBeUndefined();
    },
  );

  test('a method without a role stops the server at its start, by name', () => {
    expect(() => checkRoles(Object.keys(leastGrades))).not.toThrow();
    expect(() => checkRoles([...Object.keys(leastGrades), '/a.B/C', '/a.B/D'])).toThrow('no role is set for /a.B/C, /a.B/D');
  });
});

describe('G1: which instructions', () => {
  test('an operator sends what only reads or converges', () => {
    const sent = catalogue.filter(({ type }) => mayInstruct('operator', type));
    expect(sent.every(({ scheduling: { repeat } }) => repeat === 'read' || repeat === 'repeat')).toBe(true);
    expect(sent.map(({ type }) => type)).toEqual(
      expect.arrayContaining(['GET_NODE_STATUS', 'SET_VPN_PEERS', 'APPLY_CR', 'UNINSTALL_HELM_CHART']),
    );
    for (const type of ['RUN_REMOTE_SCRIPT', 'UNINSTALL_NODE', 'REINSTALL_NODE', 'REMOVE_ETCD_MEMBER', 'VIP_ASSIGN']) {
      expect(mayInstruct('operator', type)).toBe(false);
    }
  });

  test('an admin sends everything, also what this version does not know; a viewer nothing', () => {
    const types = [...catalogue.map(({ type }) => type), 'SOMETHING_NEW'];
    expect(types.filter((type) => !mayInstruct('admin', type))).toEqual([]);
    expect(types.filter((type) => mayInstruct('viewer', type))).toEqual([]);
    expect(mayInstruct('operator', 'SOMETHING_NEW')).toBe(false);
  });
});
