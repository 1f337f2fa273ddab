// `openapi-typescript` needs the compiler's older interface, which comes with another generator.
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const parentURL = pathToFileURL(join(import.meta.dirname, '..', 'node_modules/oazapfts/package.json')).href
registerHooks({
  resolve: (name, context, next) => next(name, name === 'typescript' ? { ...context, parentURL } : context),
})
