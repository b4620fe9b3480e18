export interface CallOptions {
  /** Cancels the call, which rejects with `canceled`. */
  readonly signal?: AbortSignal | undefined;
}
