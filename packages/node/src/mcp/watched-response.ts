/** Returns the same answer, and calls `onFinished` once when it has been read completely or its reader has gone. */
export function watchedResponse(response: Response, request: Request, onFinished: () => void): Response {
  const { body } = response;
  if (body === null) {
    onFinished();
    return response;
  }
  const reader = body.getReader();
  const done = () => {
    request.signal.removeEventListener("abort", leave);
    onFinished();
  };
  const leave = () => {
    done();
    reader.cancel().catch(() => {});
  };
  // A reader that leaves before it reads the body never cancels it.
  request.signal.addEventListener("abort", leave, { once: true });
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done: isOver, value } = await reader.read();
        if (!isOver) return controller.enqueue(value);
        done();
        controller.close();
      },
      cancel: leave,
    },
    { highWaterMark: 0 },
  );
  return new Response(stream, response);
}
