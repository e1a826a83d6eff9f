import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export const SIGNING_KEY =
  '-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmQENBGMHoXcBCADu\n=oC67\n-----END PGP PUBLIC KEY BLOCK-----\n';

/**
 * apt, dpkg, kubeadm, the kubelet, kubectl and systemctl, as their documentation has them: not verified against the real ones. Each
 * writes its argv into `log`, a line each, and keeps its state in files beside it.
 */
const tools: Readonly<Record<string, string>> = {
  'dpkg-query': `for name; do :; done
[ -e "$S/package-$name" ] || { echo "dpkg-query: no packages found matching $name" >&2; exit 1; }
echo "ii  $(cat "$S/package-$name")-1.1"`,
  dpkg: `exit 0`,
  'apt-mark': `verb="$1"; shift
case "$verb" in
showhold) ls "$S/held" ;;
hold) for name; do : > "$S/held/$name"; done ;;
unhold) for name; do rm -f "$S/held/$name"; done ;;
esac`,
  'apt-get': `sleep "$(cat "$S/slow")"
for word; do
  case "$word" in
  [a-z]*=[0-9]*-\\*) name="\${word%%=*}"; version="\${word#*=}"; printf %s "\${version%-\\*}" > "$S/package-$name" ;;
  esac
done
echo "end of apt-get $*" >> "$S/log"`,
  kubeadm: `sleep "$(cat "$S/slow")"
[ "$2" = apply ] && printf %s "\${3#v}" > "$S/api"
echo "end of kubeadm $*" >> "$S/log"`,
  kubelet: `echo "Kubernetes v$(cat "$S/package-kubelet")"`,
  kubectl: `case "$*" in
*/version*) echo "{\\"gitVersion\\":\\"v$(cat "$S/api")\\"}" ;;
*) echo "{\\"status\\":{\\"nodeInfo\\":{\\"kubeletVersion\\":\\"v$(cat "$S/node")\\"},\\"conditions\\":[{\\"type\\":\\"Ready\\",\\"status\\":\\"True\\"}]}}" ;;
esac`,
  systemctl: `[ "$1" = restart ] && cp "$S/package-kubelet" "$S/node"
exit 0`,
};

/** A machine of Kubernetes that an upgrade can be done on. */
export class UpgradeTools {
  /** To be in the PATH of the agent. */
  readonly programs: string;
  readonly #state: string;

  private constructor(folder: string) {
    this.programs = join(folder, 'programs');
    this.#state = join(folder, 'state');
  }

  static async make(folder: string, version: string): Promise<UpgradeTools> {
    const made = new UpgradeTools(folder);
    await mkdir(made.programs);
    await mkdir(join(made.#state, 'held'), { recursive: true });
    for (const name of ['package-kubeadm', 'package-kubelet', 'package-kubectl', 'api', 'node']) await made.write(name, version);
    for (const name of ['kubeadm', 'kubelet', 'kubectl']) await made.write(`held/${name}`, '');
    await made.write('slow', '0');
    await made.write('log', '');
    for (const [name, body] of Object.entries(tools)) {
      const file = join(made.programs, name);
      await writeFile(file, `#!/bin/sh\nS='${made.#state}'\necho "${name} $*" >> "$S/log"\n${body}\n`);
      await chmod(file, 0o755);
    }
    return made;
  }

  write(name: string, text: string): Promise<void> {
    return writeFile(join(this.#state, name), text);
  }

  read(name: string): Promise<string> {
    return readFile(join(this.#state, name), 'utf8');
  }

  /** Argv of each program that has run, but for what only asks. */
  async changes(): Promise<readonly string[]> {
    const lines = (await this.read('log')).split('\n');
    return lines.filter((line) => /^(?:apt-get|kubeadm|apt-mark (?:un)?hold|systemctl restart|dpkg )/.test(line));
  }
}
