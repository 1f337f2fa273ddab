import fc from 'fast-check'

/** For mutation testing: every mutant meets the same histories, so that what survives does so twice. */
fc.configureGlobal({ seed: 20260301 })
