import { SandboxError } from "@sandpiper/core";
import { errorBody } from "@sandpiper/protocol";
import type { Handlers } from "../call.ts";
import { publicError } from "../error-response.ts";
import { eventResponse } from "../server-sent-events.ts";
import { PullReport } from "./pull-report.ts";

export const imageHandlers = {
  pullImage(call) {
    const { body, deps, requestId } = call;
    deps.reserve.require("pull the image", ["disk"]);
    const pull = deps.containers.pull(body);
    return eventResponse(call, async function* (signal) {
      const report = new PullReport();
      const pulled = pull({ signal, onProgress: report.add }).finally(() => report.end());
      // Reported below.
      pulled.catch(() => {});
      for await (const progress of report) yield { kind: "progress", data: progress };
      try {
        await pulled;
        yield { kind: "done", data: { image: body.image } };
      } catch (thrown) {
        const error = SandboxError.from(thrown);
        if (error.code === "internal") deps.logger.error({ requestId, err: error }, "could not pull an image");
        yield { kind: "error", data: errorBody(publicError(error), requestId) };
      }
    });
  },
} satisfies Partial<Handlers>;
