/** A refusal, in the words of Firecracker where they are published. */
export class Fault extends Error {
  /** The process is of no use any more, and ends after it has said so. */
  readonly isFatal: boolean;

  constructor(message: string, { isFatal = false }: { readonly isFatal?: boolean } = {}) {
    super(message);
    this.isFatal = isFatal;
  }
}

export const afterStart = () => new Fault("The requested operation is not supported after starting the microVM.");
export const beforeStart = () => new Fault("The requested operation is not supported before starting the microVM.");
