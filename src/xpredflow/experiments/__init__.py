"""The paper's tables and figures on our models, and a comparison of decoders: a module each."""
