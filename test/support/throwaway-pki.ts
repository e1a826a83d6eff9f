import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface IssuedFiles {
  /** PEM. */
  readonly certificate: string;
  readonly privateKey: string;
}

export interface Wanted {
  readonly name: string;
  readonly organization?: string;
  /** `DNS:localhost`, `URI:…` */
  readonly san?: readonly string[];
  readonly usage?: 'clientAuth' | 'serverAuth' | 'serverAuth,clientAuth';
  /** `YYYYMMDDHHMMSSZ`; a year round now when they are not said. */
  readonly from?: string;
  readonly to?: string;
}

/** An authority of P-256 keys for tests, made by openssl. */
export class ThrowawayPki {
  readonly #folder: string;
  #count = 0;

  constructor(name = 'test root') {
    this.#folder = mkdtempSync(join(tmpdir(), 'holdfast-pki-'));
    mkdirSync(join(this.#folder, 'new'));
    writeFileSync(join(this.#folder, 'index'), '');
    writeFileSync(join(this.#folder, 'serial'), '1000\n');
    writeFileSync(join(this.#folder, 'ca.conf'), this.#config());
    this.#key('ca.key');
    const subject = ['-subj', `/CN=${name}`, '-days', '365', '-config', this.#path('ca.conf'), '-extensions', 'v3_ca'];
    this.#openssl('req', '-x509', '-new', '-key', this.#path('ca.key'), ...subject, '-out', this.#path('ca.crt'));
  }

  get root(): string {
    return readFileSync(this.#path('ca.crt'), 'utf8');
  }

  issue({ name, organization, san = [], usage = 'clientAuth', from, to }: Wanted): IssuedFiles {
    const id = `leaf${++this.#count}`;
    const names = san.length === 0 ? '' : `subjectAltName=${san.join(',')}\n`;
    writeFileSync(this.#path(`${id}.ext`), `extendedKeyUsage=${usage}\n${names}`);
    this.#key(`${id}.key`);
    const subject = `${organization === undefined ? '' : `/O=${organization}`}/CN=${name}`;
    const request = ['-key', this.#path(`${id}.key`), '-subj', subject, '-config', this.#path('ca.conf')];
    this.#openssl('req', '-new', ...request, '-out', this.#path(`${id}.csr`));
    const time = [
      ...(from === undefined ? [] : ['-startdate', from]),
      ...(to === undefined ? ['-days', '300'] : ['-enddate', to]),
    ];
    const files = ['-in', this.#path(`${id}.csr`), '-out', this.#path(`${id}.crt`), '-extfile', this.#path(`${id}.ext`)];
    this.#openssl('ca', '-batch', '-notext', '-config', this.#path('ca.conf'), ...time, ...files);
    return {
      certificate: readFileSync(this.#path(`${id}.crt`), 'utf8'),
      privateKey: readFileSync(this.#path(`${id}.key`), 'utf8'),
    };
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #key(file: string): void {
    this.#openssl('ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', this.#path(file));
  }

  #path(file: string): string {
    return join(this.#folder, file);
  }

  #openssl(...args: readonly string[]): void {
    execFileSync('openssl', args, { stdio: 'pipe' });
  }

  #config(): string {
    return [
      '[ca]',
      'default_ca = own',
      '[own]',
      `database = ${this.#path('index')}`,
      `serial = ${this.#path('serial')}`,
      `new_certs_dir = ${this.#path('new')}`,
      `certificate = ${this.#path('ca.crt')}`,
      `private_key = ${this.#path('ca.key')}`,
      'default_md = sha256',
      'policy = any',
      'unique_subject = no',
      '[any]',
      'organizationName = optional',
      'commonName = supplied',
      '[req]',
      'distinguished_name = none',
      'prompt = no',
      '[none]',
      'CN = unused',
      '[v3_ca]',
      'basicConstraints = critical,CA:TRUE',
      'keyUsage = keyCertSign,cRLSign',
      '',
    ].join('\n');
  }
}
