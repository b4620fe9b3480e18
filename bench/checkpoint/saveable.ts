/** What came of a checkpoint, and how long it took. */
export interface Restored {
  readonly sandbox: Saveable;
  readonly tookMs: number;
  /** The part of it that could have been done before there was a checkpoint. */
  readonly placeMs: number;
}

/** A running sandbox of some make that can be saved as files and brought back from them. */
export interface Saveable extends AsyncDisposable {
  /** Runs `true` in it, so many times one after another. */
  use(execs: number): Promise<void>;
  /** Milliseconds until it is saved in a directory that exists and is empty. Unless it keeps running, it has ended then. */
  checkpoint(directory: string, options: { readonly keepsRunning: boolean }): Promise<number>;
  /** Brings a sandbox of the same make to life, beside this one, from what was saved; until its agent answers. */
  restore(directory: string): Promise<Restored>;
}
