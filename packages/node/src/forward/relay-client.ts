/** The client of a connection whose streams are relayed, as far as a relay needs it. */
export interface RelayClient {
  /** Resolves when the connection has ended; never rejects. */
  readonly closed: Promise<void>;
  /** Sends an answer at once. */
  send(message: object): unknown;
  /** Sends when there is room; undefined when that was now. */
  deliver(make: () => Uint8Array | string | undefined): Promise<void> | undefined;
  /** Nothing is read from the client until all of these are disposed. */
  holdBack(): Disposable;
  close(code: number, reason: string): void;
}
