"""Load and save models: native folders, HDF5, ELMoForManyLangs, bundled names."""
