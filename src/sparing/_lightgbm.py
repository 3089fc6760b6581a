"""LightGBM, or how to get its OpenMP runtime where the machine has none."""

try:
    import lightgbm
except OSError as error:  # the library is there, libgomp (libomp) is not
    raise ImportError(
        f"LightGBM could not be loaded: {error}. It needs the OpenMP runtime, which slim images lack: install libgomp1 "
        "(apt-get install libgomp1) on Debian and Ubuntu, libomp (brew install libomp) on macOS."
    ) from error

__all__ = ["lightgbm"]
