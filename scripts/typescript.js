// Has Node run the sources as they are: node --import ./scripts/typescript.js bench/fold.ts. It removes types by itself;
// all it lacks is that what is imported as .js is written as .ts.
import { registerHooks } from 'node:module'

registerHooks({
  resolve(specifier, context, next) {
    const isSource = specifier.startsWith('.') && context.parentURL?.endsWith('.ts')
    return next(isSource ? specifier.replace(/\.js$/, '.ts') : specifier, context)
  },
})
