import { runHostProgram } from "../../host/testing/host-program.ts";
import { FirecrackerProvider } from "../provider.ts";

await runHostProgram((options) => new FirecrackerProvider(options));
