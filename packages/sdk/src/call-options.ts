export interface CallOptions {
  /** Gives the call up; it rejects with `canceled`. */
  readonly signal?: AbortSignal | undefined;
}
