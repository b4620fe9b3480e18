import {
  ProtocolError,
  ProtocolErrorCode,
  type ReadResourceResult,
  ResourceNotFoundError,
} from "@modelcontextprotocol/server";
import { SandboxError } from "@sandpiper/sdk";

/** Reads a resource; converts errors to those of the protocol. */
export async function readResource(uri: URL, read: () => Promise<ReadResourceResult>): Promise<ReadResourceResult> {
  try {
    return await read();
  } catch (thrown) {
    const error = SandboxError.from(thrown);
    if (error.code === "not_found" || error.code === "gone") throw new ResourceNotFoundError(uri.href, error.message);
    const isCallers = error.code === "invalid_argument" || error.code === "failed_precondition";
    const code = isCallers ? ProtocolErrorCode.InvalidParams : ProtocolErrorCode.InternalError;
    throw new ProtocolError(code, error.message, { reason: error.reason });
  }
}
