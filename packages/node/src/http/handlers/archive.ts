import type { Handlers } from "../call.ts";
import { lengthOf } from "../read-body.ts";
import { requestBytes } from "../request-bytes.ts";
import { streamResponse } from "../stream-response.ts";
import { packDirectory } from "./pack-directory.ts";
import { unpackArchive } from "./unpack-archive.ts";

const MIB = 1024 * 1024;
/** Allows for the headers and the padding of an archive. */
const ARCHIVE_OVERHEAD = 2;

export const archiveHandlers = {
  async readArchive(call) {
    const live = call.open();
    const { path } = call.query;
    const source = async function* (signal: AbortSignal) {
      using _ = live.hold("file");
      yield* packDirectory(live.files, path, signal);
    };
    return streamResponse(call, source, { headers: { "content-type": "application/x-tar" } });
  },

  async writeArchive(call) {
    const live = call.open();
    const limitBytes = live.record.diskMib * MIB;
    const archive = requestBytes(call, { limitBytes: limitBytes * ARCHIVE_OVERHEAD });
    call.deps.reserve.require("unpack the archive", ["disk"], { diskBytes: lengthOf(call.request) });
    using _ = live.hold("file");
    const { path } = call.query;
    return await unpackArchive(live, archive, { path, limitBytes, signal: call.request.signal });
  },
} satisfies Partial<Handlers>;
