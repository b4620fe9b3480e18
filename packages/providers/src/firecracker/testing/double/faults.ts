/** A refusal, with Firecracker's published message. */
export class Fault extends Error {
  /** A fault after which the process reports it and exits. */
  readonly isFatal: boolean;

  constructor(message: string, { isFatal = false }: { readonly isFatal?: boolean } = {}) {
    super(message);
    this.isFatal = isFatal;
  }
}

export const afterStart = () => new Fault("The requested operation is not supported after starting the microVM.");
export const hotplug = () => new Fault("Drive config error: PCI is not enabled");
export const beforeStart = () => new Fault("The requested operation is not supported before starting the microVM.");
