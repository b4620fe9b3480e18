import { type DestroyOptions, type InstanceExit, SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";

/** The life of an instance up to its end, which is reported once. */
export abstract class HostInstance {
  readonly id: SandboxId;
  readonly exited: Promise<InstanceExit>;
  /** An instance that ends because it was saved has not crashed. */
  protected isSaved = false;
  readonly #exited = Promise.withResolvers<InstanceExit>();
  #destroyed: Promise<void> | undefined;

  constructor(id: SandboxId) {
    this.id = id;
    this.exited = this.#exited.promise;
  }

  destroy(options: DestroyOptions = {}): Promise<void> {
    this.#destroyed ??= this.remove(options).then(
      () => this.end({ reason: "destroyed", message: "it was destroyed" }),
      (error: unknown) => {
        this.#destroyed = undefined;
        throw error;
      },
    );
    return this.#destroyed;
  }

  /** Removes every trace of the instance. */
  protected abstract remove(options: DestroyOptions): Promise<void>;

  protected get isDestroyed(): boolean {
    return this.#destroyed !== undefined;
  }

  protected end(exit: InstanceExit): void {
    this.#exited.resolve(exit);
  }

  /** Reports the end of an instance that was neither destroyed nor saved. */
  protected async endBy(findExit: () => Promise<InstanceExit>): Promise<void> {
    if (this.isDestroyed || this.isSaved) return;
    this.end(await findExit().catch((error) => ({ reason: "crashed", message: SandboxError.from(error).message })));
  }

  protected noChannel(cause?: unknown): SandboxError {
    return new SandboxError("instance_ended", {
      message: `cannot connect to instance ${this.id}: it has ended`,
      cause,
    });
  }
}
