/** The one byte stream between a host program and an agent. */
export interface Channel {
  /**
   * Writes the pieces in order, as one unit. Returns undefined when more may be written at once, or a promise of the
   * moment when it may: whoever sends much waits for it.
   */
  write(pieces: readonly Uint8Array[]): Promise<void> | undefined;
  /** Called once, before the first byte is expected. A chunk is only valid during the call. */
  open(receiver: ChannelReceiver): void;
  close(): void;
}

export interface ChannelReceiver {
  data(chunk: Uint8Array): void;
  /** Called once, also after close(); `cause` says why when nobody here closed it. */
  closed(cause?: Error): void;
}
