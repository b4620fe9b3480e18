import { findGoProblem, goProgramPath, provideGoProgram } from "./go-program.mjs";
import { isProgram } from "./programs.mjs";

/** @type {import("./go-program.mjs").GoProgram} */
const s3Server = {
  name: "versitygw",
  title: "the S3 server",
  packagePath: "github.com/versity/versitygw/cmd/versitygw",
  version: "v1.8.0",
  moduleSum: "h1:au+wI+aybno/STsQiSm35Uu6Q6iK5MWReQxgO6SEMFc=",
};

/** @type {import("./go-program.mjs").GoProgram} */
const gcsServer = {
  name: "fake-gcs-server",
  title: "the Google Cloud Storage emulator",
  packagePath: "github.com/fsouza/fake-gcs-server",
  version: "v1.56.1",
  moduleSum: "h1:K03sAvbLvDz4hAynpCCUqnNRp+ik9JFSvHbkD/wTPOU=",
};

/** @type {import("./go-program.mjs").GoProgram} */
const registry = {
  name: "registry",
  title: "the image registry",
  packagePath: "github.com/google/go-containerregistry/cmd/registry",
  version: "v0.22.1",
  moduleSum: "h1:RZuuSYhTvlDvtsK+NkutoCZ//C0X2ebLK8X8l3ULs84=",
};

const servers = [s3Server, gcsServer, registry];

/**
 * The servers that tests start. Set-up builds them before tests run: a build beside tests would slow those down.
 * @returns {import("./plan.mjs").Plan}
 */
export function planServers() {
  const detail = servers.map(goProgramPath).join(", ");
  if (servers.every((program) => isProgram(goProgramPath(program)))) return { detail, problems: [] };
  return {
    detail,
    problems: findGoProblem("the servers that tests start"),
    announcement: { name: "test servers", seconds: 160 },
    work: async () => {
      for (const server of servers) await provideGoProgram(server);
    },
  };
}

/** The path of the S3 server that tests of the store use. */
export function provideS3Server() {
  return provideGoProgram(s3Server);
}

/** The path of the Google Cloud Storage emulator that tests of the store use. */
export function provideGcsServer() {
  return provideGoProgram(gcsServer);
}

/** The path of the image registry that tests of containers use. */
export function provideRegistry() {
  return provideGoProgram(registry);
}
