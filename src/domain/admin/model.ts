import type { AdminGrade } from '../certificate/model.js';

/** Who makes a call of the admin API, as far as that was proven. */
export interface AdminCaller {
  /** `local:1000`, or `admin:alice`: as instructions name their senders. */
  readonly name: string;
  /** With role, serial and address where there is a certificate: as the audit log names them. */
  readonly who: string;
  readonly grade: AdminGrade;
  /** By which the caller was let in, for the audit log. */
  readonly rule: string;
}
