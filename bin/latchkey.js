#!/usr/bin/env node
// The version is looked at before anything is loaded: what is loaded does not run, or crashes, on an older Node.
if (Number.parseInt(process.versions.node, 10) >= 22) {
  await import('../dist/src/cli/main.js')
} else {
  console.error(
    `Latchkey needs Node.js 22 or newer; this is ${process.version}.\n` +
      'Install Node.js 22 or newer from https://nodejs.org. In a clone you can run a full `npm ci` (without --omit=dev)\n' +
      'instead: it brings a Node.js of its own, which `npm start` and `npx latchkey` use.',
  )
  process.exitCode = 2
}
