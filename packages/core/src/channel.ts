/** The one byte stream between a host program and an agent. */
export interface Channel {
  /**
   * Writes the pieces in order, as one unit. Returns undefined when more may be written immediately, or a promise that
   * resolves when it may.
   */
  write(pieces: readonly Uint8Array[]): Promise<void> | undefined;
  /** Called once, before the first byte is expected. A chunk is only valid during the call. */
  open(receiver: ChannelReceiver): void;
  close(): void;
}

export interface ChannelReceiver {
  /** Returns a promise when the channel must not read more before it resolves. */
  data(chunk: Uint8Array): Promise<void> | undefined;
  /** Called once, also after close(); `cause` is set if this side did not close it. */
  closed(cause?: Error): void;
}
