"""Files to models and back: native folders, HDF5, ELMoForManyLangs, bundled names."""
