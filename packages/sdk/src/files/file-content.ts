/** A string is written as UTF-8. A stream can be sent only once, so such a write is not retried. */
export type FileContent =
  | string
  | Uint8Array
  | Blob
  | ReadableStream<Uint8Array>
  | AsyncIterable<Uint8Array>
  | Iterable<Uint8Array>;

export interface RequestContent {
  readonly body: Uint8Array<ArrayBuffer> | Blob | ReadableStream<Uint8Array>;
  /** Whether it can be sent again. */
  readonly isRepeatable: boolean;
}

export function requestContent(content: FileContent): RequestContent {
  if (typeof content === "string") return { body: new TextEncoder().encode(content), isRepeatable: true };
  if (content instanceof Uint8Array) return { body: content as Uint8Array<ArrayBuffer>, isRepeatable: true };
  if (content instanceof Blob) return { body: content, isRepeatable: true };
  if (content instanceof ReadableStream) return { body: content, isRepeatable: false };
  return { body: streamOf(content), isRepeatable: false };
}

/** Browsers lack ReadableStream.from. */
function streamOf(pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): ReadableStream<Uint8Array> {
  const iterator = Symbol.asyncIterator in pieces ? pieces[Symbol.asyncIterator]() : pieces[Symbol.iterator]();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await iterator.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    async cancel() {
      await iterator.return?.();
    },
  });
}
