import type { AbsolutePath } from '../../domain/kernel/paths.js';
import type { RemovalOrder } from '../../domain/uninstall/model.js';
import { decodeOrder, encodeOrder } from '../../domain/uninstall/schema.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { MachineFiles, NewFile } from '../../ports/files/machine-files.js';

/** What an order takes to be given. */
export interface NewOrder {
  /** The id of the instruction's task; undefined: a person asks for it. */
  readonly task: string | undefined;
  /** Of a reinstall: what is run when the node is gone. */
  readonly command: string | undefined;
  /** Wall clock, milliseconds. */
  readonly at: number;
}

/**
 * The order to remove this node, in a folder beside its data directory, with the command of a reinstall: it is there before anything is
 * removed, and goes when all is done. What the files say is durable. @throws AgentError `adoption.file_failed`
 */
export class RemovalOrders {
  readonly #files: MachineFiles;
  readonly #folder: AbsolutePath;

  constructor(files: MachineFiles, folder: AbsolutePath) {
    this.#files = files;
    this.#folder = folder;
  }

  /** Where the command of a reinstall is: a shell is given the file, and no text of it. */
  get commandFile(): AbsolutePath {
    return this.#at('command');
  }

  /** What cannot be read is no order. */
  async read(options: CallOptions): Promise<RemovalOrder | undefined> {
    const text = await this.#files.read(this.#at('order.json'), options);
    return text === undefined ? undefined : decodeOrder(text);
  }

  /** The first one stands as long as it is not carried out: the same again changes nothing. */
  async give({ task, command, at }: NewOrder, options: CallOptions): Promise<void> {
    if ((await this.read(options)) !== undefined) return;
    const kind = command === undefined ? 'uninstall' : 'reinstall';
    const files: readonly NewFile[] = [
      ...(command === undefined ? [] : [{ path: this.commandFile, text: command, mode: 0o600 }]),
      this.#file({ kind, task, at, stage: 'removing' }),
    ];
    // The order stands last: with it, its command is there.
    await this.#files.replace(files, options);
  }

  /** From here on the command may have begun. */
  async installing(order: RemovalOrder, options: CallOptions): Promise<void> {
    await this.#files.replace([this.#file({ ...order, stage: 'installing' })], options);
  }

  /** All is done. The command goes last: without an order nobody runs it. */
  async done(options: CallOptions): Promise<void> {
    await this.#files.remove(this.#at('order.json'), options);
    await this.#files.remove(this.commandFile, options);
  }

  #file(order: RemovalOrder): NewFile {
    return { path: this.#at('order.json'), text: encodeOrder(order), mode: 0o600 };
  }

  #at(name: string): AbsolutePath {
    return `${this.#folder}/${name}` as AbsolutePath;
  }
}
