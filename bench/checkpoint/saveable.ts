/** A restored sandbox, and how long the restore took. */
interface Restored {
  readonly sandbox: Saveable;
  readonly tookMs: number;
  /** The part that prepares the instance and needs no checkpoint. */
  readonly preparedMs: number;
}

/** A running sandbox that can be saved as files and restored from them. */
export interface Saveable extends AsyncDisposable {
  /** Runs `true` in it, `count` times sequentially. */
  use(execs: number): Promise<void>;
  /** Milliseconds until it is saved in an existing empty directory. Unless left running, it has then ended. */
  checkpoint(directory: string, options: { readonly keepsRunning: boolean }): Promise<number>;
  /** Restores another sandbox of the same kind from the saved files, until its agent answers. */
  restore(directory: string): Promise<Restored>;
}
